/** A server that answers what the migration asks of Redis, from values in memory. */
import { once } from 'node:events';
import { createServer } from 'node:net';

const bulk = (value) =>
  Buffer.concat([Buffer.from(`$${Buffer.byteLength(value)}\r\n`), Buffer.from(value), Buffer.from('\r\n')]);
const array = (values) => Buffer.concat([Buffer.from(`*${values.length}\r\n`), ...values]);
const number = (value) => Buffer.from(`:${value}\r\n`);

/** @param values by key: a list from its left end on, a Map of scores by member, or an object of members */
const ANSWERS = {
  HGETALL: (values, key) => array(Object.entries(values[key] ?? {}).flatMap((pair) => pair.map(bulk))),
  HMGET: (values, key, ...names) =>
    array(names.map((name) => (values[key]?.[name] === undefined ? Buffer.from('$-1\r\n') : bulk(values[key][name])))),
  LLEN: (values, key) => number(values[key]?.length ?? 0),
  LRANGE: (values, key, from, to) =>
    array((values[key] ?? []).slice(Number(from), Number(to) === -1 ? undefined : Number(to) + 1).map(bulk)),
  // The patterns are a text and a star.
  SCAN: (values, _, __, pattern) =>
    array([
      bulk('0'),
      array(Object.keys(values).flatMap((key) => (key.startsWith(pattern.slice(0, -1)) ? [bulk(key)] : []))),
    ]),
  SMEMBERS: (values, key) => array((values[key] ?? []).map(bulk)),
  ZCARD: (values, key) => number(values[key]?.size ?? 0),
  ZRANGE: (values, key, from, to) =>
    array(
      [...(values[key] ?? [])]
        .slice(Number(from), Number(to) + 1)
        .flatMap(([member, score]) => [bulk(member), bulk(String(score))]),
    ),
};

/** The value of a key that has another type than is asked for. */
export const OTHER_TYPE = Symbol('other type');

/** Serves values. @returns its address, and how to end it */
export async function fakeRedis(values) {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.on('data', (data) => {
      // One or more commands, each an array of texts without line ends.
      const lines = data.toString().split('\r\n');
      for (let at = 0; lines[at]?.startsWith('*'); ) {
        const count = Number(lines[at].slice(1));
        const words = Array.from({ length: count }, (_, index) => lines[at + 2 + 2 * index]);
        at += 1 + 2 * count;
        const [verb, ...rest] = words;
        const isOther = values[rest[0]] === OTHER_TYPE;
        socket.write(
          isOther ? '-WRONGTYPE Operation against a key of another type\r\n' : ANSWERS[verb](values, ...rest),
        );
      }
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { url: `redis://127.0.0.1:${server.address().port}`, close: () => server.close() };
}
