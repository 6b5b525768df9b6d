/**
 * The directory: the small object that knows which queues exist. A queue registers itself once, and gets the number that
 * its job ids carry. Never on the way of a job.
 */
import { DurableObject } from 'cloudflare:workers';
import schema from '../../migrations/0001_directory.sql';
import type { Env } from '../config';
import { routeCandidate } from '../job/ids';
import type { DirectoryApi, KnownQueue } from '../queue/api';

type Row = { route: number; name: string; created_at: number };

export class DirectoryObject extends DurableObject<Env> implements DirectoryApi {
  private ready = false;

  /** Registers a queue, once; a later call answers the same. */
  async register(name: string): Promise<KnownQueue> {
    this.prepare();
    return this.ctx.storage.transactionSync(() => {
      const known = this.select('name = ?', name)[0];
      if (known) return known;
      for (let probe = 0; ; probe++) {
        const route = routeCandidate(name, probe);
        if (this.select('route = ?', route).length > 0) continue;
        const queue = { route, name, created_at: Date.now() };
        this.ctx.storage.sql
          .exec('INSERT INTO queues (route, name, created_at) VALUES (?, ?, ?)', route, name, queue.created_at)
          .toArray();
        return queue;
      }
    });
  }

  /** All queues, by name. */
  async list(): Promise<KnownQueue[]> {
    return this.exists() ? this.select('1 ORDER BY name') : [];
  }

  /** The queue whose job ids carry this route. */
  async resolve(route: number): Promise<KnownQueue | null> {
    return this.exists() ? (this.select('route = ?', route)[0] ?? null) : null;
  }

  /** Forgets everything. */
  async reset(): Promise<void> {
    await this.ctx.storage.deleteAll();
    this.ready = false;
  }

  private select(where: string, ...bindings: (string | number)[]): KnownQueue[] {
    return this.ctx.storage.sql
      .exec<Row>(`SELECT route, name, created_at FROM queues WHERE ${where}`, ...bindings)
      .toArray();
  }

  private exists(): boolean {
    this.ready ||=
      this.ctx.storage.sql.exec("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'queues'").toArray()
        .length > 0;
    return this.ready;
  }

  private prepare(): void {
    if (this.exists()) return;
    this.ctx.storage.transactionSync(() => this.ctx.storage.sql.exec(schema).toArray());
    this.ready = true;
  }
}
