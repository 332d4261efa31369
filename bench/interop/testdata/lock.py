# Does what the lines of its input say with redis-py's Lock, and answers each.
#
#	acquire NAME MILLISECONDS    ok | no
#	extend NAME MILLISECONDS     ok | an exception's name
#	release NAME                 ok | an exception's name
import sys

import redis

client = redis.Redis(port=int(sys.argv[1]))
locks = {}
for line in sys.stdin:
    op, name, *ttl = line.split()
    try:
        if op == "acquire":
            lock = client.lock(name, timeout=float(ttl[0]) / 1000)
            answer = "ok" if lock.acquire(blocking=False) else "no"
            if answer == "ok":
                locks[name] = lock
        elif op == "extend":
            locks[name].extend(float(ttl[0]) / 1000, replace_ttl=True)
            answer = "ok"
        else:
            locks[name].release()
            answer = "ok"
    except redis.exceptions.LockError as e:
        answer = type(e).__name__
    print(answer, flush=True)
