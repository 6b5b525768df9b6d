/** Queues as files, over HTTP. */
import { expect } from 'vitest';
import { type ExportHeader, PartWriter } from '../../src/export/file';
import { type Answer, type Body, type Json, server, type TestServer, V1 } from './server';

const path = (queue: string, verb: 'export' | 'import', query: string) =>
  `${V1}/admin/queues/${queue}/${verb}${query === '' ? '' : `?${query}`}`;

/** The answer to an export, to be read as it arrives. */
export function openExport(queue: string, query = '', by: TestServer = server): Promise<Response> {
  return Promise.resolve(by.send(new Request(new URL(path(queue, 'export', query), 'http://localhost'))));
}

/** A queue as the text of a file. */
export async function exported(queue: string, query = '', by: TestServer = server): Promise<string> {
  const response = await openExport(queue, query, by);
  const text = new TextDecoder().decode(await response.arrayBuffer());
  expect(response.status, text).toBe(200);
  expect(response.headers.get('Content-Type')).toBe('application/x-ndjson');
  return text;
}

/** Sends a file to a queue. */
export function sendFile(queue: string, text: string, query = '', by: TestServer = server): Promise<Answer> {
  return by.call('POST', path(queue, 'import', query), text, { 'Content-Type': 'application/x-ndjson' });
}

/** Sends a file that must be taken; what came of it. */
export async function imported(queue: string, text: string, query = ''): Promise<Body> {
  const { status, body } = await sendFile(queue, text, query);
  expect(status, JSON.stringify(body)).toBe(200);
  return body;
}

/** The lines of a file, parsed. */
export const linesIn = (text: string): Json[] =>
  text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line));

/** The jobs in a file. */
export const jobsIn = (text: string): Json[] => linesIn(text).flatMap(({ job }) => (job ? [job as Json] : []));

/** A file with these lines, and with the hashes that belong to them. */
export async function fileOf(queue: string, lines: readonly Json[]): Promise<string> {
  const header: ExportHeader = { tocsin: 'export', version: 1, queue, ended: true };
  const writer = new PartWriter(header);
  const jobs: Record<string, number> = {};
  let text = writer.begin();
  for (const line of lines) {
    const state = (line.job as Json | undefined)?.state;
    if (line.job) jobs[String(state)] = (jobs[String(state)] ?? 0) + 1;
    text += await writer.add(JSON.stringify(line));
  }
  return text + (await writer.end(jobs, {}));
}
