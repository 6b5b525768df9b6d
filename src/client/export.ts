/** Whole queues as files, out and in. What a queue sends, and what it is sent, is checked here too. */
import type * as contract from '../contract/export';
import { FileError, linesOf, type Part, PartReader } from '../export/file';
import { own } from '../job/own';
import { messageOf } from '../job/thrown';
import { InvalidJobError, UnavailableError } from '../producer/errors';
import type { Named } from '../producer/names';
import { shaped } from './answers';
import { chunksOf } from './event-stream';
import { parametersFrom } from './pages';
import { pathTo } from './requests';
import type { Open, Send } from './transport';

export interface ExportOptions {
  /** With all jobs that have ended. Default: of these, dead letters only. */
  ended?: boolean;
}

/** A file: its text, or its bytes, in pieces. */
export type FileText = AsyncIterable<string | Uint8Array> | Iterable<string | Uint8Array>;

export interface ImportOptions {
  /** The queue may have other jobs; these stay, and so do its settings. */
  merge?: boolean;
  /** Checks the file, and changes nothing. */
  dryRun?: boolean;
  /** Called after each request with what has come of the file so far. */
  onProgress?: (sofar: Imported) => void;
}

export type Imported = Named<contract.Imported>;

const TYPE = 'application/x-ndjson';

/** Characters of parts that are sent together. */
const MAX_SENT = 2 * 1024 * 1024;

/** @throws {UnavailableError} when the file breaks off, or is not what the queue sent */
export async function* exportQueue(open: Open, name: string, { ended = false }: ExportOptions): AsyncGenerator<string> {
  const stop = new AbortController();
  const path = `${pathTo`/admin/queues/${name}/export`}?ended=${ended}`;
  const body = await open(path, { Accept: TYPE }, stop.signal);
  try {
    yield* checkedText(pieces(body ? chunksOf(body) : []));
  } catch (error) {
    const why = error instanceof FileError ? error.message : messageOf(error);
    const info = { status: 200, code: 'invalid_response', retryable: true };
    throw new UnavailableError(`The export of ${name} broke off: ${why}`, info);
  } finally {
    stop.abort();
  }
}

async function* checkedText(text: AsyncIterable<string>): AsyncGenerator<string> {
  const reader = new PartReader();
  for await (const line of linesOf(text)) {
    const isFirst = reader.header === undefined;
    const part = await reader.take(line);
    if (part) yield part.text;
    else if (isFirst || reader.end) yield `${line}\n`;
  }
  reader.finished();
}

/** @throws {InvalidJobError} when the file is not as it was exported; what the server answers */
export async function importQueue(send: Send, name: string, file: FileText, options: ImportOptions): Promise<Imported> {
  const reader = new PartReader();
  const sender = new Sender(send, name, options);
  try {
    for await (const line of linesOf(pieces(file))) {
      const part = await reader.take(line);
      if (part) await sender.add(part, reader.headerText);
    }
    reader.finished();
  } catch (error) {
    if (!(error instanceof FileError)) throw error;
    const info = { status: 400, code: 'invalid_payload', retryable: false, details: { line: error.line } };
    throw new InvalidJobError(error.message, info);
  }
  return await sender.end();
}

export class Sender {
  private parts: Part[] = [];
  private chars = 0;
  private header = '';
  private file: string | undefined;
  private readonly sum: Imported;

  constructor(
    private readonly send: Send,
    private readonly queue: string,
    private readonly options: ImportOptions,
  ) {
    const counts = { parts: 0, lastPart: 0, imported: 0, known: 0, idRows: 0, schedules: 0 };
    this.sum = { queue, dryRun: options.dryRun === true, complete: false, ...counts, notKept: {} };
  }

  /** @param header the first line of the file */
  async add(part: Part, header: string): Promise<void> {
    this.header = header;
    this.file ??= part.hash;
    this.parts.push(part);
    this.chars += part.text.length;
    if (this.chars >= MAX_SENT) await this.flush();
  }

  async end(): Promise<Imported> {
    await this.flush();
    this.sum.complete = true;
    return this.sum;
  }

  private async flush(): Promise<void> {
    const { parts, header, options, sum } = this;
    const [first] = parts;
    if (!first || this.file === undefined) return;
    this.parts = [];
    this.chars = 0;
    const how = { merge: options.merge || undefined, dryRun: options.dryRun || undefined };
    const query = parametersFrom({ file: this.file, afterLine: first.firstLine - 2, ...how });
    const body = `${header}\n${parts.map(({ text }) => text).join('')}`;
    const path = `${pathTo`/admin/queues/${this.queue}/import`}?${query}`;
    const answer = await this.send('POST', path, body, { headers: { 'Content-Type': TYPE } });
    const come = shaped<Imported>(answer, 'imported', 'what was imported');
    for (const name of ['parts', 'imported', 'known', 'idRows', 'schedules'] as const) sum[name] += come[name];
    for (const [what, n] of Object.entries(come.notKept)) sum.notKept[what] = (own(sum.notKept, what) ?? 0) + n;
    sum.lastPart = come.lastPart;
    options.onProgress?.(sum);
  }
}

export async function* pieces(file: FileText): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  for await (const piece of file) yield typeof piece === 'string' ? piece : decoder.decode(piece, { stream: true });
  yield decoder.decode();
}
