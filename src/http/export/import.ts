/** Reads a file part by part as it arrives, and imports each once it is whole and checked. */
import { importCron, importInto, readCron } from '../../across/import';
import type { Imported } from '../../contract/export';
import { FileError, linesOf, type Part, PartReader } from '../../export/file';
import { parseLine, readStoredJob } from '../../export/stored-job';
import { isObject, readName, readObject, readWord } from '../../job/envelope/fields';
import { ApiError, invalidPayload, invalidRequest, refusal, unsupported } from '../../job/errors';
import { MAX_GROUP_LENGTH, readGroupChange } from '../../job/group';
import { own } from '../../job/own';
import { orThrow } from '../../job/thrown';
import type { ImportPart } from '../../rpc/export';
import type { CronDefinition } from '../../schedules/definition';
import { changed } from '../../settings';
import { type AppContext, json } from '../context';
import { parseQueueConfig } from '../queues/config';
import { refuseCoding } from '../request/body';
import { holdSoon, noRoom } from '../request/held';
import { mayCreate } from '../request/new-queues';
import { parseContext } from '../request/parse-context';
import { queueNameIn } from '../request/path';
import { booleanParam, integerParam, textParam } from '../request/query';

/** What a request holds at once, in bytes: some parts as text and as values. */
const HELD_BYTES = 2 * 1024 * 1024;

/** Jobs of one transaction, and characters of their lines, from which on no further part joins it. */
const TURN_JOBS = 2_000;
const TURN_CHARS = 1024 * 1024;

/** A body is read to its end behind an error, but no more than this. */
const MAX_DRAINED_BYTES = 128 * 1024 * 1024;

const MODES = ['active', 'paused', 'draining'] as const;

export async function importQueue(c: AppContext) {
  const queue = queueNameIn(c);
  const dry_run = booleanParam(c, 'dry_run') ?? false;
  const merge = booleanParam(c, 'merge') ?? false;
  const reader = new PartReader(integerParam(c, 'after_line', 0, Number.MAX_SAFE_INTEGER) ?? 0);
  const counts = { parts: 0, last_part: 0, complete: false, imported: 0, known: 0, id_rows: 0, schedules: 0 };
  const answer: Imported = { queue, dry_run, ...counts, not_kept: {} };
  const run = new Import(c, merge, textParam(c, 'file'), answer);
  const body = c.req.raw.body?.getReader() as ReadableStreamDefaultReader<Uint8Array> | undefined;
  try {
    refuseCoding(c);
    if (!(await holdSoon(c, HELD_BYTES))) throw noRoom();
    await mayCreate(c, [{ queue }]);
    for await (const line of linesOf(textOf(body))) {
      const part = await reader.take(line);
      if (part) await run.take(part, reader.header?.queue ?? queue);
    }
    reader.finished(true);
    await run.flush();
  } catch (error) {
    // The parts before a wrong line come in.
    if (error instanceof FileError || error instanceof WrongLine) await run.flush();
    // An answer while the client still sends would break its connection.
    await drain(body);
    throw error instanceof FileError ? refusalOf(error) : error;
  }
  answer.complete = reader.end !== undefined;
  return json(c, answer);
}

/** A line says what cannot be. */
class WrongLine extends ApiError {}

class Import {
  private parts: ImportPart[] = [];
  private crons: CronDefinition[] = [];
  private jobs = 0;
  private chars = 0;

  constructor(
    private readonly c: AppContext,
    private readonly merge: boolean,
    /** The hash of the first part. */
    private file: string | undefined,
    private readonly answer: Imported,
  ) {}

  /** The next part, which is as it was exported. @param from the queue that was exported */
  async take(part: Part, from: string): Promise<void> {
    if (part.number === 1) this.file = part.hash;
    const { settings, jobs, crons } = await this.read(part, from);
    if (settings && this.merge) this.notKept('settings');
    this.parts.push({ number: part.number, jobs, ...(settings && !this.merge && { settings }) });
    this.crons.push(...crons);
    this.jobs += jobs.length;
    this.chars += part.text.length;
    if (this.jobs >= TURN_JOBS || this.chars >= TURN_CHARS) await this.flush();
  }

  async flush(): Promise<void> {
    const { c, merge, answer, parts, crons } = this;
    const { queue, dry_run } = answer;
    const [first] = parts;
    const last = parts.at(-1);
    if (!first || !last) return;
    if (this.file === undefined) throw invalidRequest('file', 'file is required: the hash of the first part.');
    Object.assign(this, { parts: [], crons: [], jobs: 0, chars: 0 });
    // What was not written cannot be continued.
    const mayContinue = merge || (dry_run && first.number > 1);
    const taken = await importInto(c.env, queue, { file: this.file, merge: mayContinue, parts }, dry_run);
    answer.imported += taken.imported;
    answer.known += taken.known;
    answer.id_rows += taken.id_rows;
    if (taken.elsewhere > 0) this.notKept('id_in_another_queue', taken.elsewhere);
    for (const definition of crons) {
      const outcome = await importCron(c.env, definition, dry_run);
      if (outcome === 'imported') answer.schedules++;
      else if (outcome === 'other') this.notKept('schedule_exists');
    }
    answer.parts += parts.length;
    answer.last_part = last.number;
  }

  private notKept(what: string, n = 1): void {
    this.answer.not_kept[what] = (own(this.answer.not_kept, what) ?? 0) + n;
  }

  /** All lines of a part, before anything of it is written. */
  private async read(part: Part, from: string) {
    const { queue } = this.answer;
    const context = { ...parseContext(this.c), queue, from };
    const jobs: ImportPart['jobs'] = [];
    const crons: CronDefinition[] = [];
    let settings: ImportPart['settings'];
    for (const [index, text] of part.lines.entries()) {
      const line = part.firstLine + index;
      await at(line, async () => {
        const value = parseLine(text);
        const [[name, member] = ['', undefined], ...others] = isObject(value) ? Object.entries(value) : [];
        if (others.length > 0) throw new FileError(line, 'must have one member.');
        if (name === 'job') jobs.push(await readStoredJob(member, { ...context, path: 'job' }));
        else if (name === 'schedule') crons.push(await readCron(member, queue, { now: context.now, path: 'schedule' }));
        else if (name === 'settings') settings = settingsOf(member);
        else throw new FileError(line, 'must be a job, a schedule or the settings.');
      });
    }
    return { settings, jobs, crons };
  }
}

function settingsOf(value: unknown): NonNullable<ImportPart['settings']> {
  const { mode, config, groups = {} } = readObject(value, 'settings');
  const overrides = Object.entries(readObject(groups, 'settings.groups')).map(([group, override]) => [
    readName(MAX_GROUP_LENGTH)(group, 'settings.groups'),
    readGroupChange(readObject(override, `settings.groups.${group}`)),
  ]);
  const change = parseQueueConfig(readObject(config, 'settings.config'));
  return {
    mode: readWord(MODES)(mode, 'settings.mode'),
    config: changed({}, change),
    groups: Object.fromEntries(overrides),
  };
}

/** Runs `read`. An error of it names the line. */
async function at(line: number, read: () => Promise<void>): Promise<void> {
  try {
    await read();
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const { data } = error;
    throw new WrongLine({ ...data, message: `Line ${line}: ${data.message}`, details: { ...data.details, line } });
  }
}

/** Of the file: 422 for a later version, else 400. */
function refusalOf({ message, line, versions }: FileError): ApiError {
  if (versions) return unsupported(message, { line, ...versions });
  return refusal(400, 'invalid_payload', message, { details: { line } });
}

async function* textOf(body: ReadableStreamDefaultReader<Uint8Array> | undefined): AsyncGenerator<string> {
  if (!body) return;
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: false });
  const notUtf8 = () => invalidPayload('The body is not valid UTF-8.');
  for (;;) {
    const { value, done } = await body.read();
    yield orThrow(() => decoder.decode(value, { stream: !done }), notUtf8);
    if (done) return;
  }
}

async function drain(body: ReadableStreamDefaultReader<Uint8Array> | undefined): Promise<void> {
  if (!body) return;
  try {
    for (let bytes = 0; bytes < MAX_DRAINED_BYTES; ) {
      const { value, done } = await body.read();
      if (done) return;
      bytes += value.byteLength;
    }
    await body.cancel();
  } catch {
    // The client is gone.
  }
}
