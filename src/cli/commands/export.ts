import { createReadStream, createWriteStream, mkdtempSync, renameSync, rmSync, statSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { TocsinClient } from '../../client/client';
import { type Imported, pieces, Sender } from '../../client/export';
import { type ExportEnd, FileError, isJobLine, linesOf, type Part, PartReader } from '../../export/file';
import { own } from '../../job/own';
import { action, type Members, type Opened, type Result, type Session } from '../command';
import { requestsTo } from '../connection';
import { CliError, notWritten, usageError } from '../failure';
import { notice, table } from '../output';
import { type DeploymentImported, deploymentText, importDeployment } from '../transfer/deployment';
import { ProgressLine } from '../transfer/progress';

interface Visitor {
  /** @param queue null: what holds for all queues */
  begin?(queue: string | null): Promise<void>;
  part?(part: Part, header: string): Promise<void>;
  end?(end: ExportEnd): Promise<void>;
}

interface Contents {
  queues: { queue: string; jobs: number }[];
  isDeployment: boolean;
}

/** Reads and checks a file. @throws {CliError} only when it is not as it was exported, naming the line */
async function readSections(path: string, visitor: Visitor = {}): Promise<Contents> {
  const contents: Contents = { queues: [], isDeployment: false };
  const promised = new Set<string>();
  let reader: PartReader | undefined;
  let lines = 0;
  try {
    for await (const line of linesOf(pieces(createReadStream(path)))) {
      lines++;
      if (line === '' && (!reader || reader.end)) continue;
      if (!reader || reader.end) {
        reader = new PartReader(0, lines - 1);
        await reader.take(line);
        await visitor.begin?.(queueOf(reader));
      } else {
        const part = await reader.take(line);
        if (part) {
          if (queueOf(reader) === null) for (const name of queuesIn(part)) promised.add(name);
          await visitor.part?.(part, reader.headerText);
        }
      }
      if (!reader.end) continue;
      const queue = queueOf(reader);
      if (queue === null) contents.isDeployment = true;
      else contents.queues.push({ queue, jobs: Object.values(reader.end.jobs).reduce((sum, n) => sum + n, 0) });
      if (queue !== null) promised.delete(queue);
      await visitor.end?.(reader.end);
    }
    (reader ?? new PartReader()).finished();
    const [missing] = promised;
    if (missing !== undefined) throw new FileError(lines + 1, `the file ends before queue ${missing}.`);
    return contents;
  } catch (error) {
    if (!(error instanceof FileError)) throw error;
    const hint = error.versions
      ? 'Install the version of tocsin that wrote the file, or a later one.'
      : 'Nothing was imported. Export again.';
    throw new CliError(`${path}: ${error.message}`, hint, 'invalid_file');
  }
}

const queueOf = ({ header }: PartReader): string | null => header?.queue ?? null;

const queuesIn = ({ lines }: Part): string[] =>
  lines.flatMap((line) => {
    const { queue } = JSON.parse(line) as { queue?: unknown };
    return typeof queue === 'string' ? [queue] : [];
  });

const EXPORTED = {
  output: ['-o, --output <file>', 'file to write to; default: standard output'],
  ended: ['--ended', 'include completed, cancelled and discarded jobs; dead letters are always included'],
} as const;

export const exporting = action(
  'export',
  'write queues to a file: settings, jobs and schedules, to import them elsewhere or later',
  { takes: [['[queues...]', 'names of queues; none: the whole deployment']], flags: EXPORTED },
  async (opened, queues) => {
    const { terminal, members } = opened;
    const { output, ended = false } = members;
    if (output === undefined && terminal.interactive) {
      throw usageError('Where should the file go?', 'Name it with --output, or pipe it into another command.');
    }
    if (output === undefined) {
      await exportTo(opened, queues, ended, async (text) => {
        terminal.out(text);
        await terminal.drained?.();
      });
      return undefined;
    }
    const written = await inFile(output, (write) => exportTo(opened, queues, ended, write));
    const rows = written.map(({ queue, jobs }) => [queue, jobs]);
    return { value: { file: output, queues: written }, text: table(['QUEUE', 'JOBS'], rows) };
  },
);

type Write = (text: string) => Promise<void>;

/** Writes a file that only its user may read. One of this name is always whole: it gets its name at the end. */
async function inFile<T>(path: string, fill: (write: Write) => Promise<T>): Promise<T> {
  // A device or a pipe cannot be replaced.
  const isFile = statSync(path, { throwIfNoEntry: false })?.isFile() ?? true;
  const part = isFile ? `${path}.part` : path;
  let file: FileHandle | undefined;
  try {
    if (isFile) rmSync(part, { force: true });
    const opened = await open(part, isFile ? 'wx' : 'w', 0o600);
    file = opened;
    const filled = await fill((text) => opened.appendFile(text));
    if (isFile) await file.sync();
    await file.close();
    if (isFile) renameSync(part, path);
    return filled;
  } catch (error) {
    await file?.close().catch(() => undefined);
    if (file && isFile) rmSync(part, { force: true });
    throw notWritten(path, error);
  }
}

async function exportTo(
  { tocsin, terminal }: Session,
  named: readonly string[],
  ended: boolean,
  write: Write,
): Promise<Contents['queues']> {
  const queues = [...named];
  if (named.length === 0) {
    for await (const { name } of tocsin.queues.list()) queues.push(name);
    for await (const text of deploymentText(tocsin, queues)) await write(text);
  }
  const written: Contents['queues'] = [];
  for (const queue of queues) {
    const progress = new ProgressLine(terminal, queue, terminal.isWatched ? await countOf(tocsin, queue, ended) : 0);
    let jobs = 0;
    try {
      for await (const text of tocsin.queues.export(queue, { ended })) {
        await write(text);
        for (const line of text.split('\n')) if (isJobLine(line)) jobs++;
        progress.at(jobs);
      }
    } finally {
      progress.end();
    }
    written.push({ queue, jobs });
  }
  return written;
}

/** About how many jobs there will be. A key need not be able to count them. */
async function countOf(tocsin: TocsinClient, queue: string, ended: boolean): Promise<number> {
  try {
    const { depth, dead, completed, cancelled, discarded } = await tocsin.queues.stats(queue);
    return ended ? depth + completed + cancelled + discarded : depth + dead;
  } catch {
    return 0;
  }
}

const IMPORTED = {
  queue: ['--queue <name>', 'new name for the queue, if the file contains only one'],
  merge: ['--merge', 'import also into queues with other jobs; keep those jobs and the settings'],
  dryRun: ['--dry-run', 'check the file and show what would be imported'],
} as const;

export const importing = action(
  'import',
  'import queues from a file into this deployment; the whole file is checked first',
  {
    takes: [['[file]', 'file that tocsin export wrote; - reads standard input', String, '-']],
    flags: IMPORTED,
    note: 'You can repeat an interrupted import: it continues after the last part.',
  },
  async (opened, file) => {
    const folder = file === '-' ? mkdtempSync(join(tmpdir(), 'tocsin-import-')) : undefined;
    try {
      const path = folder === undefined ? file : join(folder, 'file');
      // It is read twice: once to check it, once to send it.
      if (folder !== undefined) {
        await pipeline(process.stdin, createWriteStream(path)).catch((error) => {
          throw notWritten(path, error);
        });
      }
      return await importFrom(opened, path, await readSections(path));
    } finally {
      if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
    }
  },
);

async function importFrom(
  { tocsin, members, terminal, endpoint }: Opened<Members<typeof IMPORTED>>,
  path: string,
  contents: Contents,
): Promise<Result> {
  const { merge = false, dryRun = false, queue: renamed } = members;
  if (renamed !== undefined && (contents.queues.length !== 1 || contents.isDeployment)) {
    throw usageError('--queue is for a file of one queue.', 'Export that queue alone: tocsin export <queue>');
  }
  const warn = (warning: string) => notice(terminal, `warning: ${warning}`);
  const { safely } = requestsTo(endpoint, { onWarning: warn });
  const settings: DeploymentImported = { imported: 0, known: 0, not_kept: {} };
  const all: Imported[] = [];
  let current: { sender: Sender; progress: ProgressLine } | undefined;
  try {
    await readSections(path, {
      begin: async (queue) => {
        if (queue === null) return;
        const total = contents.queues.find((one) => one.queue === queue)?.jobs ?? 0;
        const progress = new ProgressLine(terminal, queue, total);
        const onProgress = ({ imported, known }: Imported) => progress.at(imported + known);
        current = { sender: new Sender(safely, renamed ?? queue, { merge, dryRun, onProgress }), progress };
      },
      part: async (part, header) => {
        if (current) await current.sender.add(part, header);
        else await importDeployment(tocsin, part, dryRun, settings);
      },
      end: async () => {
        if (!current) return;
        all.push(await current.sender.end());
        current.progress.end();
        current = undefined;
      },
    });
  } finally {
    current?.progress.end();
  }
  const deployment = contents.isDeployment ? { deployment: settings } : {};
  return { value: { dryRun, queues: all, ...deployment }, text: textOf(all, settings) };
}

function textOf(all: readonly Imported[], settings: DeploymentImported): string {
  const rows = all.map(({ queue, imported, known, schedules }) => [queue, imported, known, schedules]);
  const left = [
    ...all.flatMap(({ queue, notKept }) =>
      Object.entries(notKept).map(([what, n]) => `${queue}: ${n} ${own(WORDS, what) ?? what}`),
    ),
    ...Object.entries(settings.not_kept).map(([what, n]) => `deployment: ${n} ${what} differ from those here`),
  ];
  const lines = [table(['QUEUE', 'IMPORTED', 'KNOWN', 'SCHEDULES'], rows), ...left.map((line) => `not kept  ${line}`)];
  return lines.join('\n');
}

/** Why something was not taken over. */
const WORDS: Readonly<Record<string, string>> = {
  idInAnotherQueue: 'jobs whose ids belong to jobs of other queues',
  scheduleExists: 'schedules whose names are taken',
  settings: 'settings, because the queue keeps its own',
};
