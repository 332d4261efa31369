# Does what the lines of its input say with redis-py's Lock, and answers each.
#
#	acquire NAME SECONDS    ok | no
#	extend NAME SECONDS     ok | an exception's name
#	release NAME            ok | an exception's name
import sys

import redis

client = redis.Redis(port=int(sys.argv[1]))
locks = {}
for line in sys.stdin:
    op, name, *seconds = line.split()
    try:
        if op == "acquire":
            locks[name] = client.lock(name, timeout=float(seconds[0]))
            answer = "ok" if locks[name].acquire(blocking=False) else "no"
        elif op == "extend":
            locks[name].extend(float(seconds[0]), replace_ttl=True)
            answer = "ok"
        else:
            locks[name].release()
            answer = "ok"
    except redis.exceptions.LockError as e:
        answer = type(e).__name__
    print(answer, flush=True)
