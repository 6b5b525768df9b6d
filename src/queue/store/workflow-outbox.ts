/**
 * What a queue owes to workflows: the ends of their jobs, written in the transaction that ends the job and kept until the
 * workflow has confirmed them; and the record of which of their jobs it has taken.
 */
import type { Ending } from '../../rpc/workflow';

/** Ends and characters in a row, unless a single one is larger. A row holds 2 MB. */
const MAX_ENDINGS = 100;
const MAX_CHUNK = 256 * 1024;

/** Characters in one report. A message holds 32 MiB. */
const MAX_REPORT_CHARS = 8 * 1024 * 1024;

/** Ends to be reported to one workflow, and the rows that hold them. */
export interface Report {
  ids: number[];
  endings: Ending[];
  /** The workflow's rows in `workflow_starts` when the report was made. */
  starts: number[];
}

export class WorkflowOutbox {
  private waiting: { workflow: string; json: string }[] = [];
  /** May there be rows? Undefined: look. */
  private filled: boolean | undefined;

  constructor(private readonly sql: SqlStorage) {}

  /** Memory is to be built anew. */
  load(): void {
    this.filled = undefined;
  }

  get size(): number {
    return this.waiting.length;
  }

  /** Forgets what was added after `size`: the operation that added it was rolled back. */
  rollback(size: number): void {
    this.waiting.length = size;
  }

  add(workflow: string, ending: Ending): void {
    this.waiting.push({ workflow, json: JSON.stringify(ending) });
  }

  /** Writes what was added, in as few rows as size allows. Call once, at the end of the transaction. */
  flush(): void {
    if (this.waiting.length === 0) return;
    const byWorkflow = new Map<string, string[]>();
    for (const { workflow, json } of this.waiting) {
      const list = byWorkflow.get(workflow);
      if (list) list.push(json);
      else byWorkflow.set(workflow, [json]);
    }
    this.waiting = [];
    for (const [workflow, endings] of byWorkflow) this.write(workflow, endings);
    this.filled = true;
  }

  get isEmpty(): boolean {
    this.filled ??= this.sql.exec('SELECT 1 FROM workflow_outbox LIMIT 1').toArray().length > 0;
    return !this.filled;
  }

  /** Workflows with something to be told, by id. */
  workflowsAfter(workflow: string, limit: number): string[] {
    return this.sql
      .exec<{ workflow: string }>(
        'SELECT DISTINCT workflow FROM workflow_outbox WHERE workflow > ? ORDER BY workflow LIMIT ?',
        workflow,
        limit,
      )
      .toArray()
      .map((row) => row.workflow);
  }

  /** What one workflow is to be told first; undefined when there is nothing. */
  reportFor(workflow: string): Report | undefined {
    const report: Report = { ids: [], endings: [], starts: [] };
    let chars = 0;
    const rows = this.sql.exec<{ id: number; data: string }>(
      'SELECT id, data FROM workflow_outbox WHERE workflow = ? ORDER BY id',
      workflow,
    );
    for (const { id, data } of rows) {
      const endings = JSON.parse(data) as Ending[];
      chars += data.length;
      const full = report.endings.length + endings.length > MAX_ENDINGS || chars > MAX_REPORT_CHARS;
      if (full && report.ids.length > 0) break;
      report.ids.push(id);
      report.endings.push(...endings);
    }
    if (report.ids.length === 0) return undefined;
    report.starts = this.startsOf(workflow).map(({ first }) => first);
    return report;
  }

  /**
   * The workflow knows these ends. Forgets them, and which jobs were taken, as far as the workflow has noted that itself.
   * @param unrecorded steps that the workflow may still ask this queue to take
   */
  confirm(workflow: string, report: Report, unrecorded: readonly number[]): void {
    for (const id of report.ids) {
      this.sql.exec('DELETE FROM workflow_outbox WHERE workflow = ? AND id = ?', workflow, id).toArray();
    }
    const asked = new Set(unrecorded);
    for (const { first, steps } of this.startsOf(workflow)) {
      if (!report.starts.includes(first) || Object.keys(steps).some((step) => asked.has(Number(step)))) continue;
      this.sql.exec('DELETE FROM workflow_starts WHERE workflow = ? AND first = ?', workflow, first).toArray();
    }
    this.filled = undefined;
  }

  /** The jobs of a workflow that were taken and may be asked for again: step → job id, null where it was refused. */
  taken(workflow: string): Map<number, string | null> {
    const found = new Map<number, string | null>();
    for (const { steps } of this.startsOf(workflow)) {
      for (const [step, id] of Object.entries(steps)) found.set(Number(step), id);
    }
    return found;
  }

  /** Notes jobs that were taken. One row written. */
  noteTaken(workflow: string, jobs: ReadonlyMap<number, string | null>): void {
    const data = JSON.stringify(Object.fromEntries(jobs));
    this.sql
      .exec(
        'INSERT INTO workflow_starts (workflow, first, data) VALUES (?, ?, ?)',
        workflow,
        Math.min(...jobs.keys()),
        data,
      )
      .toArray();
  }

  private startsOf(workflow: string): { first: number; steps: Record<string, string | null> }[] {
    return this.sql
      .exec<{ first: number; data: string }>('SELECT first, data FROM workflow_starts WHERE workflow = ?', workflow)
      .toArray()
      .map(({ first, data }) => ({ first, steps: JSON.parse(data) as Record<string, string | null> }));
  }

  private write(workflow: string, endings: readonly string[]): void {
    let chunk: string[] = [];
    let chars = 0;
    for (const json of endings) {
      if (chunk.length === MAX_ENDINGS || (chunk.length > 0 && chars + json.length > MAX_CHUNK)) {
        this.insert(workflow, chunk);
        chunk = [];
        chars = 0;
      }
      chunk.push(json);
      chars += json.length;
    }
    this.insert(workflow, chunk);
  }

  private insert(workflow: string, chunk: readonly string[]): void {
    this.sql
      .exec(
        `INSERT INTO workflow_outbox (workflow, id, data)
         SELECT ?1, 1 + coalesce((SELECT max(id) FROM workflow_outbox WHERE workflow = ?1), 0), ?2`,
        workflow,
        `[${chunk.join(',')}]`,
      )
      .toArray();
  }
}
