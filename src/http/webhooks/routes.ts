/** Webhooks: subscriptions to events, and their deliveries. They belong to the operators, wherever their paths are. */
import { isMasked, withoutSecrets } from '../../access/secrets';
import {
  findDelivery,
  listDeliveries,
  readWebhook,
  redeliver,
  viewOfChanged,
  viewsOf,
  type WebhookView,
} from '../../across/webhooks';
import { newWebhookSecret, readWebhookSecret, readWebhookUrl } from '../../config';
import {
  WEBHOOK_SECRETS,
  type Webhook,
  type WebhookAnswer,
  type WebhookDelivery,
  webhooks,
} from '../../contract/webhooks';
import { defined, given, optional, type Reader } from '../../job/envelope/fields';
import { invalidRequest, notFound, refusal, unwrap } from '../../job/errors';
import { own } from '../../job/own';
import { formatInstant } from '../../job/time';
import { UnknownMembers } from '../../job/unknown-members';
import { isWebhookId } from '../../notifications/webhook/ids';
import { noteUnknownMembers, parseWebhook, parseWebhookChange } from '../../notifications/webhook/parse';
import { DELIVERY_STATUSES } from '../../notifications/webhook/subscription';
import { also, nameGiven } from '../../ojs/names';
import { directoryObject, webhookObject } from '../../rpc/stubs';
import type { Delivery } from '../../rpc/webhooks';
import { type AppContext, json, may, noContent, unredacted } from '../context';
import { warningsOf } from '../jobs/render';
import { pendingQueues } from '../queues/render';
import { type JsonObject, readBody, readOptionalBody } from '../request/body';
import { pageByName, pagination, readPaging } from '../request/pagination';
import { pathParam } from '../request/path';
import { listParam, oneOf, textParam } from '../request/query';
import { wouldBeLost } from '../request/redacted';
import { serve } from '../route';

/** Pages of deliveries reach no further back: each webhook keeps a thousand. */
const MAX_BACK = 2_000;

export const webhookRoutes = serve(webhooks, {
  ...{ create, list, show, change, put: change, remove, test, rotate },
  ...{ deliveries, delivery, retry },
});

async function create(c: AppContext) {
  mayChoose(c);
  const body = await readBody(c);
  const secret = optional(body, 'secret', readWebhookSecret) ?? newWebhookSecret();
  const members = parseWebhook(body, urlReader(c));
  const view = await viewOfChanged(c.env, directoryObject(c.env).createWebhook(members, secret));
  const warned = warnedOf(body);
  const headers = { Location: `/ojs/v1${webhooks.list.path}/${view.webhook.id}`, ...warned.headers };
  return unredacted(c, { ...webhookAnswer(view, mayRead(c), { secret }), ...warned.members }, 201, headers);
}

async function list(c: AppContext) {
  const paging = readPaging(c);
  const page = pageByName(await directoryObject(c.env).webhooks(), ({ id }) => id, paging);
  const items = (await viewsOf(c.env, page.items)).map((view) => renderWebhook(view, mayRead(c)));
  return json(c, also('WebhookList', { ...page, items }));
}

async function show(c: AppContext) {
  const [view] = await viewsOf(c.env, [await readWebhook(c.env, idIn(c))]);
  return json(c, webhookAnswer(view as WebhookView, mayRead(c)));
}

async function change(c: AppContext) {
  const id = idIn(c);
  const body = await readBody(c);
  if (body.secret !== undefined)
    throw invalidRequest('secret', `secret is changed by POST ${webhooks.list.path}/${id}/rotate-secret.`);
  refuseMasked(c, body);
  const members = parseWebhookChange(body, urlReader(c));
  if (['url', 'events', 'filter', 'format'].some((name) => Object.hasOwn(members, name))) mayChoose(c);
  const view = await viewOfChanged(c.env, directoryObject(c.env).changeWebhook(id, members));
  const warned = warnedOf(body);
  return json(c, { ...webhookAnswer(view, mayRead(c)), ...warned.members }, 200, warned.headers);
}

function warnedOf(body: JsonObject) {
  const unknown = new UnknownMembers();
  noteUnknownMembers(unknown, body);
  return warningsOf([], unknown);
}

async function remove(c: AppContext) {
  const id = idIn(c);
  if (!unwrap(await directoryObject(c.env).deleteWebhook(id))) throw notFound('webhook', id);
  return noContent(c);
}

async function test(c: AppContext) {
  const id = idIn(c);
  const answer = unwrap(await webhookObject(c.env, id).testWebhook(id));
  const { response_body, ...rest } = answer;
  const seen = mayRead(c) ? { response_body } : {};
  return json(c, { status_code: null, ...rest, status: answer.status_code ?? 0, ...seen });
}

async function rotate(c: AppContext) {
  mayChoose(c);
  const id = idIn(c);
  const secret = optional((await readOptionalBody(c)) ?? {}, 'secret', readWebhookSecret) ?? newWebhookSecret();
  const view = await viewOfChanged(c.env, directoryObject(c.env).rotateWebhook(id, secret));
  const subscription = renderWebhook(view, mayRead(c));
  return unredacted(c, also('SecretRotated', { secret, subscription, ...pendingQueues(view.untold) }));
}

async function deliveries(c: AppContext) {
  const paging = readPaging(c);
  const subscription = textParam(c, nameGiven('DeliveryQuery', 'subscription', c.req.query()));
  if (subscription !== undefined) await readWebhook(c.env, mustBeId(subscription));
  const statuses = oneOf(listParam(c, 'status'), DELIVERY_STATUSES, 'status');
  if (paging.offset + paging.limit > MAX_BACK) {
    throw invalidRequest('page', `page must not lead beyond the ${MAX_BACK} newest deliveries.`);
  }
  const { offset, limit } = paging;
  const found = await listDeliveries(c.env, { offset, limit, ...(statuses && { statuses }) }, subscription);
  const items = found.deliveries.map((one) => renderDelivery(one, mayRead(c)));
  const place = { total: found.total, hasMore: found.total > offset + items.length, nextCursor: null };
  return json(c, also('DeliveryList', { items, total: found.total, pagination: pagination(paging, place) }));
}

async function delivery(c: AppContext) {
  const found = renderDelivery(await findDelivery(c.env, pathParam(c, 'id')), mayRead(c));
  return json(c, { delivery: found, ...found });
}

async function retry(c: AppContext) {
  const found = renderDelivery(await redeliver(c.env, pathParam(c, 'id')), mayRead(c));
  return json(c, { delivery: found, ...found }, 202);
}

/** A caller that was shown the mark in the place of a secret must not store it. @throws {ApiError} 422 */
function refuseMasked(c: AppContext, body: JsonObject): void {
  const field = mayRead(c) ? undefined : Object.keys(WEBHOOK_SECRETS).find((name) => isMasked(own(body, name)));
  if (field !== undefined) throw wouldBeLost(field);
}

/** Answers of receivers, and secrets in a subscription: only administrators see them. */
const mayRead = (c: AppContext): boolean => may(c, 'data:reveal');

/** Receivers get whole events: a caller that sees payloads redacted must not have them sent elsewhere. */
function mayChoose(c: AppContext): void {
  if (!c.get('redact')) return;
  const message = 'Receivers get data that is hidden from this key.';
  throw refusal(403, 'forbidden', message, { details: { required_scope: 'data:reveal' } });
}

const idIn = (c: AppContext): string => mustBeId(pathParam(c, 'id'));

function mustBeId(id: string): string {
  if (isWebhookId(id)) return id;
  throw notFound('webhook', id);
}

/** A webhook must not lead back here: each delivery would be a request to this server. */
function urlReader(c: AppContext): Reader<string> {
  const read = readWebhookUrl(c.env);
  const own = new URL(c.req.url).host;
  return (value, field) => {
    const url = read(value, field);
    if (new URL(url).host !== own) return url;
    throw invalidRequest(field, `${field} must not point to this server.`);
  };
}

/** A webhook, without its secret. @param revealed may the caller see the other secrets in it? */
function renderWebhook({ webhook, stats }: WebhookView, revealed: boolean): Webhook {
  const { id, url, events, filter, active, declared, metadata, disabled } = webhook;
  const { success_count, failure_count, pending_count } = stats;
  const shown: Webhook = defined({
    ...{ id, url, events },
    filter: filter && also('WebhookFilterInForce', filter),
    ...{ active, declared, metadata, format: formatOf(webhook) },
    created_at: formatInstant(webhook.created_at),
    updated_at: formatInstant(webhook.updated_at),
    last_delivery_at: given(stats.last_delivery_at, formatInstant) ?? null,
    last_delivery_status: stats.last_delivery_status ?? null,
    ...{ success_count, failure_count, pending_count },
    failing_since: given(stats.failing_since, formatInstant),
    disabled_reason: disabled?.reason,
    disabled_at: given(disabled?.at, formatInstant),
    former_secret_until: given(webhook.former?.until, formatInstant),
  });
  return revealed ? shown : withoutSecrets(shown, WEBHOOK_SECRETS);
}

/** As a client wrote it, without the key. */
const formatOf = ({ format }: WebhookView['webhook']): Webhook['format'] =>
  typeof format === 'object' && 'routing_key' in format ? 'pagerduty' : format;

/** The answer about one webhook: as a member, and flat for clients that read it flat. */
function webhookAnswer<More extends object>(view: WebhookView, revealed: boolean, more?: More) {
  const shown = { ...renderWebhook(view, revealed), ...(more as More) };
  return { subscription: shown, ...shown, ...pendingQueues(view.untold) } satisfies WebhookAnswer;
}

/** @param withResponse may the caller see the receiver's answer? */
function renderDelivery(delivery: Delivery, withResponse: boolean): WebhookDelivery {
  const { id, subscription_id, event_id, event_type, job_id, status, tries } = delivery;
  return defined({
    ...{ id, subscription_id, event_id, event_type, job_id, status, attempt: tries },
    attempts: delivery.attempts.map(({ at, ...attempt }) => ({ at: formatInstant(at), ...attempt })),
    next_attempt_at: given(delivery.next_attempt_at, formatInstant) ?? null,
    created_at: formatInstant(delivery.created_at),
    response_body: withResponse ? delivery.response_body : undefined,
  });
}
