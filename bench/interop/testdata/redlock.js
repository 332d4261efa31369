// Does what the lines of its input say with npm's redlock, on the nodes whose ports
// its arguments are, and answers each, as lock.js does.
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { Redis } from 'ioredis'
import Redlock from 'redlock'

// Without the queue a node that is down fails at once, and is not waited for.
const clients = process.argv.slice(2).map((port) => new Redis({ port: Number(port), enableOfflineQueue: false }))
for (const c of clients) c.on('error', () => {})
await Promise.all(clients.map((c) => once(c, 'ready')))
const redlock = new Redlock(clients, { retryCount: 0 })
redlock.on('clientError', () => {})
const locks = new Map()

const ops = {
	async acquire(name, ttl) {
		locks.set(name, await redlock.lock(name, Number(ttl)))
	},
	async extend(name, ttl) {
		locks.set(name, await locks.get(name).extend(Number(ttl)))
	},
	async release(name) {
		await locks.get(name).unlock()
	},
}

for await (const line of createInterface({ input: process.stdin })) {
	const [op, name, ...rest] = line.split(' ')
	try {
		await ops[op](name, ...rest)
		console.log('ok')
	} catch {
		console.log('no')
	}
}
for (const c of clients) c.disconnect()
