import { put, rows } from '../durable/sql';
import { grouped } from '../job/size';
import type { NewStep } from '../job/workflow/plan';
import type { Ending, NewWorkflow, WorkflowState } from '../rpc/workflow';

/** The request. `at`: epoch ms of its creation. */
export interface Meta extends Omit<NewWorkflow, 'steps'> {
  id: string;
  at: number;
}

export interface LoggedEnding extends Ending {
  /** Its result lies in a row of its own. */
  far?: true;
}

/** What happened, one row each. Times in epoch ms. */
export type LogEntry =
  /** Queues have taken these jobs: step and job id; null: refused. */
  | { kind: 'started'; at: number; jobs: [step: number, jobId: string | null][] }
  | { kind: 'ended'; endings: LoggedEnding[] }
  | { kind: 'cancelled'; at: number; steps: number }
  /** The jobs of these steps have been cancelled in their queues. */
  | { kind: 'called_off'; steps: number[] }
  /** The directory knows this state. */
  | { kind: 'noted'; state: WorkflowState };

/** Results beyond this many characters get a row of their own, so that the log stays small in memory. */
const FAR_RESULT = 4096;

/** Characters of bodies in a row, unless a single one is larger. A row holds 2 MB. */
const MAX_CHUNK = 256 * 1024;

type Part = { id: number; data: string };

export class WorkflowStore {
  private entries = 0;

  constructor(private readonly storage: Pick<DurableObjectStorage, 'sql' | 'transactionSync'>) {}

  /** Writes a new workflow, once there are tables. Call inside a transaction. */
  create(meta: Meta, steps: readonly NewStep[]): void {
    this.write('meta', 1, meta);
    for (const chunk of grouped(steps, ({ job }) => job.length, MAX_CHUNK)) this.write('jobs', chunk[0].step, chunk);
  }

  meta(): Meta {
    return JSON.parse((this.rows('meta')[0] as Part).data) as Meta;
  }

  log(): LogEntry[] {
    const rows = this.rows('log');
    this.entries = rows.at(-1)?.id ?? 0;
    return rows.map(({ data }) => JSON.parse(data) as LogEntry);
  }

  /** Adds to the log: one row, more for large results and many endings. @returns what the log has now */
  append(entry: LogEntry): LogEntry[] {
    if (entry.kind !== 'ended') {
      this.write('log', ++this.entries, entry);
      return [entry];
    }
    const endings = entry.endings.map((ending) => this.keepResult(ending));
    return [...grouped(endings, (ending) => JSON.stringify(ending).length, MAX_CHUNK)].map((part) => {
      const kept: LogEntry = { kind: 'ended', endings: part };
      this.write('log', ++this.entries, kept);
      return kept;
    });
  }

  /** Stores a large result separately. @returns the ending for the log */
  private keepResult(ending: LoggedEnding): LoggedEnding {
    if (ending.result === undefined || ending.result.length <= FAR_RESULT) return ending;
    const { result, ...rest } = ending;
    put(this.storage.sql, 'parts', { kind: 'result', id: ending.step, data: result });
    return { ...rest, far: true };
  }

  /** Bytes of a result that is stored separately. */
  farResultBytes(step: number): number {
    const size =
      "SELECT id, CAST(length(CAST(data AS BLOB)) AS TEXT) AS data FROM parts WHERE kind = 'result' AND id = ?";
    return Number(this.query(size, step)[0]?.data ?? 4);
  }

  /** JSON text of a result that is stored separately. */
  farResult(step: number): string | undefined {
    return this.query("SELECT id, data FROM parts WHERE kind = 'result' AND id = ?", step)[0]?.data;
  }

  jobs(): (step: number) => string {
    let loaded: NewStep[] = [];
    return (step) => {
      let found = loaded.find((job) => job.step === step);
      if (!found) {
        const newest = "SELECT id, data FROM parts WHERE kind = 'jobs' AND id <= ? ORDER BY id DESC LIMIT 1";
        const [row] = this.query(newest, step);
        loaded = row ? (JSON.parse(row.data) as NewStep[]) : [];
        found = loaded.find((job) => job.step === step);
      }
      if (!found) throw new Error(`The workflow lost the job of node ${step}.`);
      return found.job;
    };
  }

  private rows(kind: string): Part[] {
    return this.query('SELECT id, data FROM parts WHERE kind = ? ORDER BY id', kind);
  }

  private write(kind: string, id: number, data: unknown): void {
    this.query('INSERT INTO parts (kind, id, data) VALUES (?, ?, ?)', kind, id, JSON.stringify(data));
  }

  private query(sql: string, ...bindings: (string | number)[]): Part[] {
    return rows<Part>(this.storage.sql, sql, ...bindings);
  }
}
