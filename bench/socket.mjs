/** WebSockets as a worker, a producer or a follower opens them, without the client library. */

/** The subprotocol of workers and producers. */
export const WORKER = 'tocsin.worker.v1';

/**
 * Opens a socket.
 * @param options.protocol the subprotocol, if there is one
 * @param options.heard gets each message, parsed
 * @returns `say(message)`, and `close()`
 */
export async function openSocket(port, path, { protocol, heard = () => undefined } = {}) {
  const socket = new WebSocket(`ws://127.0.0.1:${port}${path}`, protocol === undefined ? [] : [protocol]);
  await new Promise((resolve, reject) => {
    socket.onopen = resolve;
    socket.onerror = () => reject(new Error(`No socket could be opened at ${path}.`));
  });
  socket.onmessage = ({ data }) => heard(JSON.parse(data));
  return { say: (message) => socket.send(JSON.stringify(message)), close: () => socket.close() };
}

/**
 * A worker or a producer.
 * @returns also `next(type)`, which resolves to the next message of a type; and `ask(message, type)`, which sends one first
 */
export async function openWorker(port, queue, id) {
  const waiting = new Map();
  const arrived = new Map();
  const heard = (message) => {
    if (message.type === 'ping') return socket.say({ type: 'pong', n: message.n });
    if (message.type === 'error') throw new Error(message.error.message);
    const resolve = waiting.get(message.type);
    waiting.delete(message.type);
    if (resolve) resolve(message);
    else arrived.set(message.type, [...(arrived.get(message.type) ?? []), message]);
  };
  const path = `/ojs/v1/workers/socket?queue=${queue}&worker_id=${id}`;
  const socket = await openSocket(port, path, { protocol: WORKER, heard });
  const next = (type) => {
    const message = arrived.get(type)?.shift();
    return message === undefined ? new Promise((resolve) => waiting.set(type, resolve)) : Promise.resolve(message);
  };
  const ask = (message, type) => {
    const answer = next(type);
    socket.say(message);
    return answer;
  };
  return { ...socket, next, ask };
}
