/** WebSockets between objects, in which a parameter of the upgrade has its purpose, as JSON; and to clients. */
import type { ErrorData, Outcome } from '../job/errors';

/** Asks an object for a socket. @returns it, not accepted yet */
export async function askForSocket(
  object: Pick<DurableObjectStub, 'fetch'>,
  name: string,
  wanted: unknown,
): Promise<Outcome<WebSocket>> {
  const url = new URL('https://object.internal/');
  url.searchParams.set(name, JSON.stringify(wanted));
  const answer = await object.fetch(url, { headers: { Upgrade: 'websocket' } });
  if (answer.webSocket) return { ok: true, value: answer.webSocket };
  return { ok: false, error: (await answer.json()) as ErrorData };
}

/** The purpose of an upgrade of this name; undefined: it is another one. */
export function wantedBy<T>(request: Request, name: string): T | undefined {
  const wanted = new URL(request.url).searchParams.get(name);
  return wanted === null ? undefined : (JSON.parse(wanted) as T);
}

export const upgradeAnswer = (answer: Outcome<Response>): Response =>
  answer.ok ? answer.value : Response.json(answer.error, { status: answer.error.status });

/** @returns false when the socket is closed: the runtime may report that later, or never */
export function sendTo(socket: WebSocket, text: string): boolean {
  try {
    socket.send(text);
    return true;
  } catch {
    return false;
  }
}

export function closeSocket(socket: WebSocket, code: number, reason?: string): void {
  try {
    socket.close(code, reason);
  } catch {
    // It is closed.
  }
}
