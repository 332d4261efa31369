// Does what the lines of its input say with ioredis, as its users lock by hand,
// and answers each.
//
//	acquire NAME MILLISECONDS    ok | no
//	extend NAME MILLISECONDS     ok | no
//	release NAME                 ok | no
import { randomUUID } from 'node:crypto'
import { createInterface } from 'node:readline'
import { Redis } from 'ioredis'

const client = new Redis({ port: Number(process.argv[2]) })
const extend = `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("pexpire", KEYS[1], ARGV[2]) else return 0 end`
const release = `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) else return 0 end`
const tokens = new Map()

const ops = {
	async acquire(name, ttl) {
		const token = randomUUID()
		if ((await client.set(name, token, 'PX', ttl, 'NX')) !== 'OK') return false
		tokens.set(name, token)
		return true
	},
	async extend(name, ttl) {
		return (await client.eval(extend, 1, name, tokens.get(name) ?? '', ttl)) === 1
	},
	async release(name) {
		return (await client.eval(release, 1, name, tokens.get(name) ?? '')) === 1
	},
}

for await (const line of createInterface({ input: process.stdin })) {
	const [op, name, ...rest] = line.split(' ')
	console.log((await ops[op](name, ...rest)) ? 'ok' : 'no')
}
client.disconnect()
