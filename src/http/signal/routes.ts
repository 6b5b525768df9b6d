/** The URLs that send one signal: a page that asks, and the signal itself. */
import { readSignalRights, type SignalRights } from '../../access/token';
import { checkPlace } from '../../across/place';
import { readConfig } from '../../config';
import { signalPages, type UrlSignal } from '../../contract/tokens';
import { storableText } from '../../job/attempt/notes';
import { defined, isObject } from '../../job/envelope/fields';
import { parseReport } from '../../job/envelope/json';
import { type ApiError, apiErrorData, notFound, refusal } from '../../job/errors';
import { formatInstant } from '../../job/time';
import { refuseOthers } from '../../job/unknown-members';
import { type AnswerOf, type AppContext, json, respond } from '../context';
import { mediaTypeOf, readJson } from '../request/body';
import { callJob, pathParam } from '../request/path';
import { serve } from '../route';
import { verified } from '../tokens/bearer';

/** What it says: a text, or else a question. */
interface SignalPage {
  title: string;
  text?: string;
  choices?: readonly string[];
}

/** Colours are the reader's own, light or dark. */
const STYLE = `:root{color-scheme:light dark;font:1.125rem/1.5 system-ui,sans-serif}
body{margin:0;min-height:100vh;display:grid;place-items:center}
main{box-sizing:border-box;width:100%;max-width:28rem;padding:1.5rem}
h1{font-size:1.5rem;line-height:1.3;overflow-wrap:anywhere}
button{display:block;width:100%;min-height:3rem;margin:.75rem 0;padding:.5rem 1rem;font:inherit;overflow-wrap:anywhere;cursor:pointer}`;

/** @returns the page, and the policy that keeps everything else out of it */
function pageOf({ title, text, choices }: SignalPage): { html: string; policy: string } {
  const nonce = crypto.randomUUID();
  const heading = escaped(title);
  const buttons = choices?.map(
    (choice) => `<button name="choice" value="${escaped(choice)}">${escaped(choice)}</button>`,
  );
  const form = `<form method="post">${buttons?.join('') ?? '<button>Confirm</button>'}</form>`;
  const html = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${heading}</title>
<style nonce="${nonce}">${STYLE}</style>
<main><h1>${heading}</h1>${text === undefined ? form : `<p>${escaped(text)}</p>`}</main>
</html>
`;
  const policy = `default-src 'none'; style-src 'nonce-${nonce}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`;
  return { html, policy };
}

const escaped = (text: string) => text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);

export const signalRoutes = serve(signalPages, {
  show: (c) => forPeople(c, async () => shown(c, 200, questionOf(await opened(c)))) as Promise<AnswerOf<never, 200>>,
  send: (c) => forPeople(c, () => send(c)) as Promise<AnswerOf<UrlSignal, 200>>,
});

const MAX_BYTES = 65_536;
const FORM = 'application/x-www-form-urlencoded';

/** @throws {ApiError} 404 for all but a token of this kind; 410 for one that has expired */
async function opened(c: AppContext): Promise<SignalRights> {
  await checkPlace(c.env);
  readConfig(c.env);
  const invalid = notFound('signal URL', '', 'Copy the whole URL, or ask for a new one.');
  const { claims, end, maker } = await verified(c, pathParam(c, 'token'), 'tocsin:signal', invalid);
  if (maker && !maker.scopes.includes('data:write')) throw invalid;
  if (end <= Date.now()) throw refusal(410, 'token_expired', 'This URL has expired.');
  return readSignalRights(claims);
}

async function send(c: AppContext): Promise<Response> {
  const rights = await opened(c);
  const { job: job_id, signal: name } = rights;
  const payload = storableText(await readAnswer(c, rights), 'body');
  const { at, earlier = false } = await callJob(c, (queue) => queue.signal({ job_id, name, payload }), job_id);
  const text = earlier ? 'This has been answered before. The first answer counts.' : 'Your answer was sent.';
  if (wantsPage(c)) return shown(c, 200, { title: rights.title ?? name, text });
  const answer: UrlSignal = { job_id, signal: { name, at: formatInstant(at) }, first: !earlier };
  return json(c, answer, 200, { 'Cache-Control': 'no-store', 'Referrer-Policy': 'no-referrer' });
}

/** What goes with the signal. @throws {ApiError} 400, 413; 422 for what is not a choice */
async function readAnswer(c: AppContext, { choices }: SignalRights): Promise<unknown> {
  const isForm = mediaTypeOf(c) === FORM;
  const parse = isForm ? (text: string) => Object.fromEntries(new URLSearchParams(text)) : parseReport;
  const body = await readJson(c, MAX_BYTES, ['application/json', FORM], parse);
  if (choices === undefined) return isForm ? null : (body ?? null);
  const given = isObject(body) ? body : {};
  refuseOthers(given, ['choice']);
  if (choices.some((choice) => choice === given.choice)) return { choice: given.choice };
  const message = `choice must be one of ${choices.map((choice) => JSON.stringify(choice)).join(', ')}.`;
  throw refusal(422, 'invalid_request', message, { details: { field: 'choice', allowed: choices } });
}

const wantsPage = (c: AppContext): boolean => c.req.header('Accept')?.includes('text/html') === true;

/** Browsers get refusals as pages. */
async function forPeople(c: AppContext, answer: () => Promise<Response>): Promise<Response> {
  try {
    return await answer();
  } catch (error) {
    const refused = wantsPage(c) ? apiErrorData(error) : undefined;
    if (!refused) throw error;
    return shown(c, refused.status, { title: 'This did not work', text: reasonFor(refused) }, refused.headers);
  }
}

const REASONS: Partial<Record<number, string>> = {
  404: 'This link is not valid. Open the whole link, or ask for a new one.',
  409: 'It is too late: the job has ended, or waits no longer.',
  410: 'This link has expired. Ask for a new one.',
  429: 'Too many links that are not valid were opened from here. Try again in a minute.',
};

const reasonFor = ({ status, message }: ApiError['data']): string => REASONS[status] ?? message;

const questionOf = ({ signal, title = signal, choices }: SignalRights): SignalPage => defined({ title, choices });

function shown(c: AppContext, status: number, page: SignalPage, headers: Record<string, string> = {}) {
  const { html, policy } = pageOf(page);
  return respond(c, html, status, {
    ...headers,
    'Content-Type': 'text/html; charset=utf-8',
    'Content-Security-Policy': policy,
    'Cache-Control': 'no-store',
    'Referrer-Policy': 'no-referrer',
    'X-Content-Type-Options': 'nosniff',
    'X-Robots-Tag': 'noindex',
  });
}
