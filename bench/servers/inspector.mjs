/** Talks to the inspector of a workerd process, in Chrome's DevTools protocol. */

/**
 * @param port of the inspector
 * @param service whose isolate is asked
 * @returns undefined: there is no such isolate. @throws when it does not answer
 */
export async function inspect(port, service) {
  const targets = await (await fetch(`http://127.0.0.1:${port}/json`)).json();
  const target = targets.find(({ id, title }) => id === service || title?.includes(service));
  if (!target) return undefined;
  const socket = new WebSocket(target.webSocketDebuggerUrl ?? `ws://127.0.0.1:${port}/${service}`);
  await new Promise((resolve, reject) => {
    socket.onopen = resolve;
    socket.onerror = () => reject(new Error('The inspector does not answer.'));
  });
  let last = 0;
  return {
    send: (method, params) => send(socket, ++last, method, params),
    close: () => socket.close(),
  };
}

function send(socket, id, method, params) {
  return new Promise((resolve, reject) => {
    const limit = setTimeout(() => reject(new Error(`No answer to ${method}.`)), 30_000);
    const hear = ({ data }) => {
      const message = JSON.parse(data);
      if (message.id !== id) return;
      clearTimeout(limit);
      socket.removeEventListener('message', hear);
      if (message.error) reject(new Error(`${method}: ${message.error.message}`));
      else resolve(message.result);
    };
    socket.addEventListener('message', hear);
    socket.send(JSON.stringify({ id, method, params }));
  });
}
