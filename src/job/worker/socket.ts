/** Messages between workers and a queue over a socket: JSON objects (`docs/reference/worker-socket.md`). */

import type { AttemptName, Report } from '../attempt/outcome';
import { readAttempt, readReports, readWorkerId } from '../attempt/read-report';
import type { Bounds } from '../bounds';
import { chunksOf, type PulledChunks } from '../chunk';
import { entriesIn } from '../envelope/batch';
import { defined, isObject, optional, readInteger, readName, readString, readWord } from '../envelope/fields';
import { notAnObject, parseParts } from '../envelope/json';
import { readMembers, required } from '../envelope/members';
import { invalidPayload, invalidRequest, type Outcome, payloadTooLarge } from '../errors';
import { readStreamName, readStreamSaid, type StreamSaid } from '../streams';
import { readTrace, type Trace } from '../trace';
import { CLAIM_MEMBERS } from './handlers';
import { type Heartbeat, readHeartbeat } from './heartbeat';

export const SUBPROTOCOL = 'tocsin.worker.v1';

/** Jobs that a worker may be ready for at once. */
export const MAX_READY = 1000;

/** Longest message of a worker, in characters. */
export const MAX_MESSAGE = 8 * 1024 * 1024;

/** Longest `types`, with what is taken by the chunk, in characters of JSON: they must outlive the object's memory. */
const MAX_TYPES_CHARS = 1200;

export interface Connection extends ReturnType<typeof readConnectionMembers> {
  /** Which jobs it takes by the chunk. */
  chunks?: PulledChunks;
  /** By what the queues count that its enqueues create; absent: it may create any number. Known to the server alone. */
  creator?: string;
  /** A key made at run time, as the Worker knows it. Known to the server alone, too. */
  key?: ConnectedKey;
}

export interface ConnectedKey {
  id: string;
  hash: string;
  rate?: string;
  bounds?: Bounds;
}

/** Jobs that a producer says: all of them are enqueued, or none. */
export interface SpokenBatch {
  id: number;
  /** As they are sent to `POST /jobs/batch`; one that names no queue goes to the socket's. */
  jobs: unknown[];
  /** Equal jobs under one key are enqueued once. */
  idempotency_key?: string;
  trace?: Trace;
}

export type WorkerMessage =
  | { type: 'ready'; count: number }
  | { type: 'report'; id: number; reports: Outcome<Report>[]; ready?: number }
  | { type: 'enqueue'; batch: SpokenBatch }
  | { type: 'stream'; id: number; request: AttemptName & StreamSaid }
  | { type: 'heartbeat'; id?: number; heard: Heartbeat }
  | { type: 'pause' }
  | { type: 'pong'; n: number }
  | { type: 'read' };

const TYPES = ['ready', 'report', 'enqueue', 'stream', 'heartbeat', 'pause', 'pong', 'read'] as const;
const readType = readWord(TYPES);
const readCount = readInteger(0, MAX_READY);
const readNumber = readInteger(0, Number.MAX_SAFE_INTEGER);
const readKey = readName(256);

const readConnectionMembers = readMembers({ ...CLAIM_MEMBERS, worker_id: required(readWorkerId) });

/** Reads who connects. @throws {ApiError} 400 */
export function readConnection(given: Record<string, unknown>): Connection {
  const connection = readConnectionMembers(given, '');
  const { types = [], handlers } = connection;
  const chunks = chunksOf(handlers);
  const chars = JSON.stringify(types).length + (chunks ? JSON.stringify(chunks).length : 0);
  if (chars > MAX_TYPES_CHARS) throw payloadTooLarge('types', chars, MAX_TYPES_CHARS, 'characters');
  return { ...connection, ...defined({ chunks }) };
}

/** The JSON of a message. @throws {ApiError} 400 */
export function parseMessage(data: string | ArrayBuffer): Record<string, unknown> {
  if (typeof data !== 'string') throw invalidPayload('Send one JSON object as text.');
  const value = parseParts(data);
  if (isObject(value)) return value;
  throw notAnObject();
}

/** Reads a message. @param workerId of the connection's worker @param now epoch ms @throws {ApiError} 400, 413 */
export function readMessage(message: Record<string, unknown>, workerId: string, now: number): WorkerMessage {
  const type = optional(message, 'type', readType);
  switch (type) {
    case undefined:
      throw invalidRequest('type', `type is required and must be one of ${TYPES.join(', ')}.`);
    case 'ready':
      return { type, count: readCount(message.count, 'count') };
    case 'report': {
      const ready = optional(message, 'ready', readCount);
      const id = readNumber(message.id, 'id');
      const reports = readReports(message.reports, 'reports', workerId, now);
      for (const report of reports) if (report.ok) report.value.worker_id = workerId;
      return { type, id, reports, ...defined({ ready }) };
    }
    case 'enqueue':
      return { type, batch: readBatch(message) };
    case 'stream': {
      const { type: _, id, got: __, name, ...report } = message;
      const said = readStreamSaid(report, readStreamName(name, 'name'));
      const request = { ...readAttempt(report, {}, 'stream'), worker_id: workerId, ...said };
      return { type, id: readNumber(id, 'id'), request };
    }
    case 'heartbeat':
      return {
        type,
        heard: readHeartbeat({ ...message, worker_id: workerId }),
        ...defined({ id: optional(message, 'id', readNumber) }),
      };
    case 'pong':
      return { type, n: readNumber(message.n, 'n') };
    default:
      return { type };
  }
}

function readBatch(message: Record<string, unknown>): SpokenBatch {
  const id = readNumber(message.id, 'id');
  const jobs = entriesIn(message, 'jobs');
  const idempotency_key = optional(message, 'idempotency_key', readKey);
  const trace = readTrace(optional(message, 'traceparent', readString), optional(message, 'tracestate', readString));
  return { id, jobs, ...defined({ idempotency_key, trace }) };
}
