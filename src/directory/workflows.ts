/** The list of workflows. A workflow is found by its id without it; the list serves searches for ids. */
import type { Schema } from '../durable/schema';
import type { WorkflowListRequest, WorkflowPage } from '../rpc/directory';
import type { WorkflowSummary } from '../rpc/workflow';

export class WorkflowList {
  constructor(private readonly tables: Schema) {}

  /** Notes a workflow or its new state. One row written; none when it is known. */
  note(summary: WorkflowSummary): void {
    this.tables.create();
    const note = `INSERT INTO workflows (id, state, data) VALUES (?, ?, ?)
      ON CONFLICT (id) DO UPDATE SET state = excluded.state, data = excluded.data WHERE data <> excluded.data`;
    this.tables.rows(note, summary.id, summary.state, JSON.stringify(summary));
  }

  forget(id: string): void {
    this.tables.rows('DELETE FROM workflows WHERE id = ?', id);
  }

  page({ states, before, offset, limit }: WorkflowListRequest): WorkflowPage {
    const where = states ? 'state IN (SELECT value FROM json_each(?))' : '1';
    const bindings = states ? [JSON.stringify(states)] : [];
    const page = `SELECT data FROM workflows WHERE ${where} AND id < ? ORDER BY id DESC LIMIT ? OFFSET ?`;
    const found = this.tables.rows<{ data: string }>(page, ...bindings, before ?? '~', limit + 1, offset);
    const total = this.tables.count(`SELECT count(*) AS n FROM workflows WHERE ${where}`, ...bindings);
    const workflows = found.slice(0, limit).map(({ data }) => JSON.parse(data) as WorkflowSummary);
    return { workflows, total, more: found.length > limit };
  }
}
