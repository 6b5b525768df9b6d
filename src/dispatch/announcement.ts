/** What a handler Worker says about itself: the types it takes, their settings, and how it wants to be called. */

import type { After } from '../durable/timers';
import { chunkIn } from '../job/chunk';
import { defined, isObject, parseObject } from '../job/envelope/fields';
import type { AnnouncedType } from '../job/record';
import { readText } from './body';
import { callWithin } from './call';
import type { Payload, TargetConfig } from './config';
import { type HandlerAnswer, isNotRunning, NOT_RUNNING, ORIGIN } from './target';

export interface Announcement {
  payload: Payload;
  /** Types that it takes; null when it does not announce them, so it gets every type that is mapped to it. */
  types: AnnouncedType[] | null;
  /** Names the announcement, also in answers: another name means that the Worker was deployed again. */
  version?: string;
  /** It reads on while it runs a batch, and stops the jobs that are cancelled meanwhile. */
  control: boolean;
  /** It asks for large results of steps when it needs them. */
  recalls: boolean;
  /** Types whose handlers may send messages while they run: calls with them stay open. */
  talking: ReadonlySet<string>;
  /** The Worker failed when asked, so this is only the fallback. */
  provisional: boolean;
}

const NONE: ReadonlySet<string> = new Set();

/**
 * Of a target that announces nothing, which gets every type that `HANDLERS` maps to it: a URL, which may have only one
 * path, or a plain Worker. @param provisional it failed when it was asked
 */
export function plainAnnouncement({ payload }: Pick<TargetConfig, 'payload'>, provisional = false): Announcement {
  return { payload: payload ?? 'envelope', types: null, control: false, recalls: false, talking: NONE, provisional };
}

/** How long an announcement may take, ms. */
export const ANNOUNCEMENT_TIMEOUT_MS = 5_000;

/** The header of an answer that names the announcement it was given under. */
export const VERSION_HEADER = 'Tocsin-Announcement';
/** Longest version that is looked at, in characters. */
const MAX_VERSION = 255;

/** Asks a handler Worker for its types. Without an announcement it gets single envelopes of every mapped type. */
export async function fetchAnnouncement(
  target: TargetConfig,
  after: After,
): Promise<Announcement | typeof NOT_RUNNING> {
  let answer: HandlerAnswer;
  try {
    const request = (signal: AbortSignal): [string, RequestInit] => [
      `${ORIGIN}/.well-known/tocsin`,
      { redirect: 'manual', signal },
    ];
    answer = await callWithin(target, request, { timeoutMs: ANNOUNCEMENT_TIMEOUT_MS, after }, async (response) => ({
      status: response.status,
      retryAfter: response.headers.get('Retry-After'),
      body: (await readText(response)).text,
    }));
  } catch {
    return plainAnnouncement(target, true);
  }
  if (isNotRunning(answer)) return NOT_RUNNING;
  return readAnnouncement(answer, target);
}

/** The announcement in an answer; anything unexpected means a plain Worker. */
export function readAnnouncement(answer: HandlerAnswer, target: Pick<TargetConfig, 'payload'>): Announcement {
  const plain = plainAnnouncement(target, answer.status >= 500 || answer.status === 429);
  if (answer.status !== 200) return plain;
  const { types, payload, version, control, recalls } = parseObject(answer.body) ?? {};
  if (!Array.isArray(types)) return plain;
  const announced = payload === 'batch' || payload === 'job' || payload === 'envelope' ? payload : 'envelope';
  return {
    payload: target.payload ?? announced,
    types: types.flatMap(readAnnouncedType),
    ...(typeof version === 'string' && version.length <= MAX_VERSION && { version }),
    control: control === true,
    recalls: recalls === true,
    talking: new Set(types.flatMap(talkingType)),
    provisional: false,
  };
}

const talkingType = (entry: unknown): string[] =>
  isObject(entry) && entry.talks === true && typeof entry.type === 'string' ? [entry.type] : [];

function readAnnouncedType(entry: unknown): AnnouncedType[] {
  if (typeof entry === 'string') return [{ type: entry }];
  if (!isObject(entry) || typeof entry.type !== 'string') return [];
  const { type, retry } = entry;
  const integer = (value: unknown, min: number) =>
    typeof value === 'number' && Number.isInteger(value) && value >= min ? value : undefined;
  return [
    defined({
      type,
      retry: isObject(retry) ? retry : undefined,
      timeout_ms: integer(entry.timeout_ms, 1),
      max_attempts: integer(entry.max_attempts, 0),
      concurrency: integer(entry.concurrency, 1),
      batch: chunkIn(entry.batch),
    }),
  ];
}
