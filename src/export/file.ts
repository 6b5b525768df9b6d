/**
 * The form of an exported file, shared with the command line, so it imports nothing.
 *
 *     {"tocsin":"export","version":1,"queue":"mail","ended":false}
 *     {"settings":{…}}
 *     {"job":{…}}
 *     {"part":1,"lines":2,"hash":"…"}
 *     {"end":true,"parts":1,"lines":2,"jobs":{"waiting":1},"not_kept":{},"hash":"…"}
 *
 * A part is a run of lines with a hash over the header and these lines, so a reader checks each part before acting on
 * it and may continue behind any part. The last line hashes these hashes. Equal lines make equal parts. CRLF, empty
 * lines and a byte order mark belong to no line.
 */

/** Of the files that this code writes; it reads no later one. */
export const EXPORT_VERSION = 1;

export const PART_LINES = 500;
export const PART_CHARS = 256 * 1024;

export const MAX_LINE_CHARS = 16 * 1024 * 1024;

export interface ExportHeader {
  tocsin: 'export';
  version: number;
  /** Null: the settings of all queues, which a file of a whole deployment begins with. */
  queue: string | null;
  /** Are jobs in it that have completed, were cancelled, or were discarded without becoming dead letters? */
  ended: boolean;
}

export interface PartEnd {
  /** From 1 on. */
  part: number;
  lines: number;
  /** SHA-256 of the header and of the lines of the part, each with its line feed; in hexadecimal digits. */
  hash: string;
}

export interface ExportEnd {
  end: true;
  parts: number;
  lines: number;
  jobs: Record<string, number>;
  /** What could not be taken along, and how often. */
  not_kept: Record<string, number>;
  /** SHA-256 of the hashes of the parts, one after the other. */
  hash: string;
}

export class FileError extends Error {
  /** @param line from 1 on @param supported the highest version that is read, where the file has a later one */
  constructor(
    readonly line: number,
    readonly reason: string,
    readonly versions?: { version: number; supported: number },
  ) {
    super(`Line ${line}: ${reason}`);
  }
}

/** SHA-256 of a text, in hexadecimal digits. */
export async function hashOf(text: string): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text)));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

const partHash = (header: string, lines: readonly string[]) => hashOf(`${[header, ...lines].join('\n')}\n`);

export const isJobLine = (line: string): boolean => line.startsWith('{"job":');

export class PartWriter {
  private readonly header: string;
  private lines: string[] = [];
  private chars = 0;
  private total = 0;
  private hashes: string[] = [];

  constructor(header: ExportHeader) {
    this.header = JSON.stringify(header);
  }

  begin(): string {
    return `${this.header}\n`;
  }

  /** Takes the next line. @returns what can be written by now */
  async add(line: string): Promise<string> {
    this.lines.push(line);
    this.chars += line.length;
    return this.lines.length >= PART_LINES || this.chars >= PART_CHARS ? this.close() : '';
  }

  /** @returns what is left to be written */
  async end(jobs: ExportEnd['jobs'], not_kept: ExportEnd['not_kept']): Promise<string> {
    const rest = await this.close();
    const { hashes, total: lines } = this;
    const end: ExportEnd = {
      end: true,
      parts: hashes.length,
      lines,
      jobs,
      not_kept,
      hash: await hashOf(hashes.join('')),
    };
    return `${rest}${JSON.stringify(end)}\n`;
  }

  private async close(): Promise<string> {
    const { lines } = this;
    if (lines.length === 0) return '';
    const hash = await partHash(this.header, lines);
    this.hashes.push(hash);
    this.lines = [];
    this.chars = 0;
    this.total += lines.length;
    const end: PartEnd = { part: this.hashes.length, lines: lines.length, hash };
    return `${lines.join('\n')}\n${JSON.stringify(end)}\n`;
  }
}

export interface Part {
  number: number;
  /** Its lines, without what closes it. */
  lines: string[];
  /** The number of its first line in the file, from 1 on. */
  firstLine: number;
  hash: string;
  /** Its text in the file, unchanged. */
  text: string;
}

/** Reads a file line by line and checks it, part by part. */
export class PartReader {
  header: ExportHeader | undefined;
  headerText = '';
  end: ExportEnd | undefined;
  private line = 0;
  private lines: string[] = [];
  private firstLine = 0;
  private chars = 0;
  private total = 0;
  private jobs = 0;
  private hashes: string[] = [];
  private last: number | undefined;

  /** @param skipped lines between the header and the next line to read @param before lines before the header */
  constructor(
    private readonly skipped = 0,
    private readonly before = 0,
  ) {}

  /** Takes the next line. @returns the part that it closes @throws {FileError} when the file was altered */
  async take(text: string): Promise<Part | undefined> {
    this.line += this.line === 1 ? 1 + this.skipped : 1;
    if (text.length > MAX_LINE_CHARS) throw this.wrong(`has more than ${MAX_LINE_CHARS} characters.`);
    if (text === '') return undefined;
    if (!this.header) {
      this.begin(text);
      return undefined;
    }
    if (this.end) throw this.wrong('stands behind the end of the file.');
    if (text.startsWith('{"part":')) return this.closePart(text);
    if (text.startsWith('{"end":')) {
      await this.finish(text);
      return undefined;
    }
    if (this.lines.length === 0) this.firstLine = this.before + this.line;
    this.lines.push(text);
    this.chars += text.length;
    const isLong = this.lines.length > PART_LINES || this.chars - text.length >= PART_CHARS;
    if (isLong) throw this.wrong('belongs to a part that should have ended before.');
    return undefined;
  }

  /** Call behind the last line. @throws {FileError} when there should be more */
  finished(mayContinue = false): void {
    if (!this.header) throw new FileError(this.before + 1, 'the file is empty.');
    this.line++;
    if (this.lines.length > 0 || (!this.end && !mayContinue)) throw this.wrong('the file ends before its end.');
  }

  private begin(text: string): void {
    const header = this.parsed(text) as Partial<ExportHeader>;
    const { tocsin, version, queue, ended } = header;
    if (tocsin !== 'export' || typeof version !== 'number') throw this.wrong('is not the beginning of an export.');
    if (version > EXPORT_VERSION) {
      const reason = `the file has version ${version}; this program reads files up to version ${EXPORT_VERSION}.`;
      throw new FileError(this.before + this.line, reason, { version, supported: EXPORT_VERSION });
    }
    const isKnown =
      version === EXPORT_VERSION && (queue === null || typeof queue === 'string') && typeof ended === 'boolean';
    if (!isKnown) throw this.wrong('is not the beginning of an export.');
    this.header = header as ExportHeader;
    this.headerText = text;
  }

  private async closePart(text: string): Promise<Part> {
    const { part: number, lines: count, hash } = this.parsed(text) as Partial<PartEnd>;
    const { lines } = this;
    if (typeof number !== 'number' || !Number.isSafeInteger(number) || number < 1) throw this.wrong('names no part.');
    const isFirst = this.last === undefined;
    const expected = (this.last ?? 0) + 1;
    if (isFirst ? number !== 1 && this.skipped === 0 : number !== expected) {
      throw this.wrong(`closes part ${number}, but part ${expected} comes next: lines are missing.`);
    }
    if (lines.length === 0 || lines.length !== count) {
      throw this.wrong(`part ${number} should have ${count} lines and has ${lines.length}.`);
    }
    const found = await partHash(this.headerText, lines);
    const { firstLine } = this;
    if (found !== hash) {
      const lastLine = this.before + this.line - 1;
      const where = lines.length === 1 ? `line ${firstLine}` : `lines ${firstLine} to ${lastLine}`;
      throw this.wrong(`part ${number}, ${where}, is not as it was exported: its hash is ${found}, not ${hash}.`);
    }
    this.last = number;
    this.lines = [];
    this.chars = 0;
    this.total += lines.length;
    this.jobs += lines.filter(isJobLine).length;
    this.hashes.push(hash);
    return { number, lines, firstLine, hash, text: `${lines.join('\n')}\n${text}\n` };
  }

  private async finish(text: string): Promise<void> {
    const end = this.parsed(text) as Partial<ExportEnd>;
    if (this.lines.length > 0) throw this.wrong('ends the file, but the part before it is not closed.');
    const { parts, lines, jobs, not_kept, hash } = end;
    if (!isCounts(jobs) || !isCounts(not_kept)) throw this.wrong('is not the end of an export.');
    if (this.last !== undefined && parts !== this.last) {
      throw this.wrong(`${parts} parts were exported, the last one here is ${this.last}.`);
    }
    if (this.skipped === 0) {
      const sum = Object.values(jobs).reduce((all, n) => all + n, 0);
      const isWhole = parts === this.hashes.length && lines === this.total && sum === this.jobs;
      if (!isWhole) {
        const here = `${this.hashes.length} parts, ${this.total} lines and ${this.jobs} jobs`;
        throw this.wrong(`${parts} parts, ${lines} lines and ${sum} jobs were exported, the file has ${here}.`);
      }
      if ((await hashOf(this.hashes.join(''))) !== hash) throw this.wrong('its hash is not that of the parts.');
    }
    this.end = end as ExportEnd;
  }

  private parsed(text: string): object {
    try {
      const value: unknown = JSON.parse(text);
      if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
    } catch {}
    throw this.wrong('is not a JSON object.');
  }

  private wrong(reason: string): FileError {
    return new FileError(this.before + this.line, reason);
  }
}

const isCounts = (value: unknown): value is Record<string, number> =>
  typeof value === 'object' && value !== null && Object.values(value).every((n) => Number.isSafeInteger(n) && n >= 0);

/** Cuts a stream of text into lines, without their ends. @throws {FileError} for one without end */
export async function* linesOf(chunks: AsyncIterable<string>): AsyncGenerator<string> {
  let begun: string[] = [];
  let chars = 0;
  let line = 1;
  for await (const chunk of chunks) {
    let from = 0;
    for (let at = chunk.indexOf('\n'); at >= 0; at = chunk.indexOf('\n', from)) {
      begun.push(chunk.slice(from, at));
      yield bare(begun.join(''), line);
      begun = [];
      chars = 0;
      from = at + 1;
      line++;
    }
    begun.push(chunk.slice(from));
    chars += chunk.length - from;
    if (chars > MAX_LINE_CHARS) throw new FileError(line, `has more than ${MAX_LINE_CHARS} characters.`);
  }
  const rest = bare(begun.join(''), line);
  if (rest !== '') yield rest;
}

/** A line without its carriage return, and the first one without its byte order mark. */
function bare(text: string, line: number): string {
  const begun = line === 1 && text.startsWith('\ufeff') ? 1 : 0;
  return text.slice(begun, text.endsWith('\r') ? -1 : undefined);
}
