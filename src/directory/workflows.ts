/** The list of workflows. A workflow is found by its id without it; the list is for those who look for ids. */
import type { Schema } from '../durable/schema';
import type { WorkflowListRequest, WorkflowPage } from '../rpc/directory';
import type { WorkflowSummary } from '../rpc/workflow';

export class WorkflowList {
  constructor(
    private readonly storage: Pick<DurableObjectStorage, 'sql'>,
    private readonly tables: Schema,
  ) {}

  /** Notes a workflow or its new state. One row written; none when it is known. */
  note(summary: WorkflowSummary): void {
    this.tables.create();
    this.storage.sql
      .exec(
        `INSERT INTO workflows (id, state, data) VALUES (?, ?, ?)
         ON CONFLICT (id) DO UPDATE SET state = excluded.state, data = excluded.data WHERE data <> excluded.data`,
        summary.id,
        summary.state,
        JSON.stringify(summary),
      )
      .toArray();
  }

  forget(id: string): void {
    if (this.tables.exist()) this.storage.sql.exec('DELETE FROM workflows WHERE id = ?', id).toArray();
  }

  /** A page, the latest first. */
  page({ states, before, offset, limit }: WorkflowListRequest): WorkflowPage {
    if (!this.tables.exist()) return { workflows: [], total: 0, more: false };
    const { sql } = this.storage;
    const [where, bindings] = states
      ? (['state IN (SELECT value FROM json_each(?))', [JSON.stringify(states)]] as const)
      : (['1', []] as const);
    const rows = sql
      .exec<{ data: string }>(
        `SELECT data FROM workflows WHERE ${where} AND id < ? ORDER BY id DESC LIMIT ? OFFSET ?`,
        ...bindings,
        before ?? '~',
        limit + 1,
        offset,
      )
      .toArray();
    const total = sql.exec<{ n: number }>(`SELECT count(*) AS n FROM workflows WHERE ${where}`, ...bindings).one().n;
    const workflows = rows.slice(0, limit).map(({ data }) => JSON.parse(data) as WorkflowSummary);
    return { workflows, total, more: rows.length > limit };
  }
}
