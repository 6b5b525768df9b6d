import { refusal } from '../../job/errors';
import type { Answer, AppContext } from '../context';

/** The subprotocols offered. @param elsewhere the same over plain HTTP @throws {ApiError} 426 without an upgrade */
export function offeredProtocols(c: AppContext, elsewhere: string): string[] {
  if (c.req.header('Upgrade')?.toLowerCase() !== 'websocket') {
    throw refusal(426, 'invalid_request', 'This path is a WebSocket: send "Upgrade: websocket".', {
      details: { field: 'Upgrade' },
      hint: `Connect with a WebSocket client. ${elsewhere}`,
    });
  }
  const offered = c.req.header('Sec-WebSocket-Protocol')?.split(',') ?? [];
  return offered.map((name) => name.trim());
}

/** The answer that hands a client its socket. @param protocol the one that was agreed on */
export function switched(c: AppContext, webSocket: WebSocket, protocol: string | undefined): Answer<null, 101> {
  const agreed = protocol === undefined ? {} : { 'Sec-WebSocket-Protocol': protocol };
  const headers = { ...c.get('headers'), ...agreed };
  return new Response(null, { status: 101, headers, webSocket }) as Answer<null, 101>;
}
