/** WebSockets between objects: an upgrade says in a parameter of its own what it is for, as JSON. */
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

/** What an upgrade of this name is for; undefined: it is another one. */
export function wantedBy<T>(request: Request, name: string): T | undefined {
  const wanted = new URL(request.url).searchParams.get(name);
  return wanted === null ? undefined : (JSON.parse(wanted) as T);
}

/** What the asking side is answered. */
export function upgradeAnswer(answer: Outcome<Response>): Response {
  return answer.ok ? answer.value : Response.json(answer.error, { status: answer.error.status });
}
