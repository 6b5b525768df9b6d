/** A file of `tocsin export`: a section per queue. A deployment's first section names all queues. */
import { createReadStream } from 'node:fs';
import { pieces } from '../../client/export';
import { type ExportEnd, FileError, linesOf, type Part, PartReader } from '../../job/export/file';
import { CliError } from '../failure';

export interface Visitor {
  /** @param queue null: what holds for all queues */
  begin?(queue: string | null): Promise<void>;
  part?(part: Part, header: string): Promise<void>;
  end?(end: ExportEnd): Promise<void>;
}

export interface Contents {
  queues: { queue: string; jobs: number }[];
  isDeployment: boolean;
}

/** Reads and checks a file. @throws {CliError} only when it is not as it was exported, naming the line */
export async function readSections(path: string, visitor: Visitor = {}): Promise<Contents> {
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

function queuesIn({ lines }: Part): string[] {
  return lines.flatMap((line) => {
    const { queue } = JSON.parse(line) as { queue?: unknown };
    return typeof queue === 'string' ? [queue] : [];
  });
}
