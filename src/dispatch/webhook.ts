/** One signed POST to a receiver. Its URL and redirects (same host) are checked again; little of the answer is read. */

import { withMaskedUrls } from '../access/secrets';
import type { After } from '../durable/timers';
import { cut } from '../job/text';
import { messageOf } from '../job/thrown';
import type { Attempted } from '../notifications/webhook/schedule';
import { retryAfterMs } from './answer';
import { readText } from './body';
import { signatureHeaders } from './signature';
import { type Allows, parseTargetUrl } from './target-url';

const USER_AGENT = 'Tocsin-Webhook/1';

const TIMEOUT_MS = 30_000;

/** Bytes of an answer that are read, and characters that are kept. */
const MAX_READ_BYTES = 64 * 1024;
const MAX_KEPT = 1024;

const MAX_REDIRECTS = 3;

export interface WebhookCall {
  url: string;
  /** Names the delivery, in all its attempts. */
  id: string;
  subscription: string;
  eventType: string;
  body: string;
  /** The current one first. */
  secrets: readonly string[];
}

export interface WebhookAttempt extends Attempted {
  /** Epoch ms. */
  at: number;
  duration_ms: number;
  /** The beginning of the answer. */
  response: string;
}

export interface WebhookWorld {
  fetch(request: Request): Promise<Response>;
  /** Epoch ms. */
  now(): number;
  after: After;
  timeoutMs?: number;
}

/** Sends it once. Never rejects. */
export async function sendWebhook(call: WebhookCall, allows: Allows, world: WebhookWorld): Promise<WebhookAttempt> {
  const at = world.now();
  const late = new AbortController();
  const timeoutMs = world.timeoutMs ?? TIMEOUT_MS;
  const endWait = world.after(timeoutMs, () => late.abort());
  try {
    const headers = {
      'Content-Type': 'application/json',
      'User-Agent': USER_AGENT,
      'X-OJS-Event-Type': call.eventType,
      'X-OJS-Delivery-ID': call.id,
      'X-OJS-Subscription-ID': call.subscription,
      ...(await signatureHeaders(['standard', 'ojs'], call.secrets, { ...call, at })),
    };
    const ended = await post(call, headers, { allows, signal: late.signal, world });
    return { at, ...ended, duration_ms: world.now() - at };
  } catch (error) {
    const why = late.signal.aborted
      ? `No answer within ${timeoutMs} ms.`
      : `No answer: ${cut(withMaskedUrls(messageOf(error)), 200)}`;
    return { at, error: why, response: '', duration_ms: world.now() - at };
  } finally {
    endWait();
  }
}

type Ended = Pick<WebhookAttempt, 'status' | 'error' | 'retryAfterMs' | 'refused' | 'response'>;

async function post(
  { url, body }: WebhookCall,
  headers: Record<string, string>,
  { allows, signal, world }: { allows: Allows; signal: AbortSignal; world: WebhookWorld },
): Promise<Ended> {
  let target = parseTargetUrl(url, allows);
  if (!target) return { refused: true, error: 'This URL may not be called.', response: '' };
  for (let redirects = 0; ; redirects++) {
    const init: RequestInit = { method: 'POST', headers, body, redirect: 'manual', signal };
    const response = await world.fetch(new Request(target, init));
    const { status } = response;
    if (status !== 307 && status !== 308) {
      const { text } = await readText(response, MAX_READ_BYTES);
      const wait = retryAfterMs(response.headers.get('Retry-After'), world.now());
      return {
        status,
        ...(wait !== undefined && { retryAfterMs: wait }),
        ...(status >= 300 && status < 400 && { error: 'Redirects are followed with 307 and 308 only.' }),
        response: cut(text, MAX_KEPT),
      };
    }
    await response.body?.cancel();
    const next = redirectedTo(target, response.headers.get('Location'), allows);
    if (!next) return { status, error: 'It redirects to a URL that may not be called.', response: '' };
    if (redirects === MAX_REDIRECTS) return { status, error: 'It redirects too many times.', response: '' };
    target = next;
  }
}

/** Where a redirect leads; undefined where it may not be followed. */
function redirectedTo(from: URL, location: string | null, allows: Allows): URL | undefined {
  if (location === null || !URL.canParse(location, from)) return undefined;
  const to = parseTargetUrl(new URL(location, from).href, allows);
  return to?.host === from.host ? to : undefined;
}
