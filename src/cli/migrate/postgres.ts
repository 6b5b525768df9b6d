/** Reads a PostgreSQL database, in one transaction that can only read: so what is read is of one moment. */
import { join } from 'node:path';
import { messageOf } from '../../job/thrown';
import { withoutPassword } from '../connection';
import { CliError, usageError } from '../failure';
import { installed, pathFrom } from '../installed';

interface Pg {
  Client: new (options: { connectionString: string; application_name: string }) => Client;
}

interface Client {
  connect(): Promise<void>;
  query(sql: string, values?: readonly unknown[]): Promise<{ rows: object[] }>;
  end(): Promise<void>;
  on(event: 'error', listener: (error: Error) => void): void;
}

/** Rows that are read at once: each may be a large job. */
const PAGE = 200;

const OWNERS = ['pg-boss', 'graphile-worker'];

export class Postgres {
  #cursors = 0;

  private constructor(
    private readonly client: Client,
    private readonly shown: string,
    readonly schema: string,
  ) {}

  static async open(url: string, schema: string): Promise<Postgres> {
    const shown = withoutPassword(url);
    if (!/^postgres(ql)?:\/\//.test(url)) {
      throw usageError(`${shown} is not an address of PostgreSQL.`, 'Write it like postgres://localhost:5432/shop.');
    }
    const client = new (findPg().Client)({ connectionString: url, application_name: 'tocsin migrate' });
    const postgres = new Postgres(client, shown, `"${schema.replaceAll('"', '""')}"`);
    // What breaks later is thrown where it is read.
    client.on('error', () => undefined);
    try {
      await client.connect();
      await client.query('BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY');
      // Sending may take longer than the timeouts of a database allow.
      await client.query('SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL statement_timeout = 0');
      return postgres;
    } catch (error) {
      await client.end().catch(() => undefined);
      throw postgres.#failed(error);
    }
  }

  async has(table: string): Promise<boolean> {
    const [found] = await this.rows<{ at: string | null }>('SELECT to_regclass($1) AS at', [`${this.schema}.${table}`]);
    return found?.at != null;
  }

  async rows<Row extends object>(sql: string, values: readonly unknown[] = []): Promise<Row[]> {
    try {
      return (await this.client.query(sql, values)).rows as Row[];
    } catch (error) {
      throw this.#failed(error);
    }
  }

  /** The rows of a long answer, a page of them at once. */
  async *all<Row extends object>(sql: string, values: readonly unknown[] = []): AsyncGenerator<Row> {
    const cursor = `tocsin_${++this.#cursors}`;
    await this.rows(`DECLARE ${cursor} NO SCROLL CURSOR FOR ${sql}`, values);
    for (;;) {
      const page = await this.rows<Row>(`FETCH ${PAGE} FROM ${cursor}`);
      yield* page;
      if (page.length < PAGE) break;
    }
    await this.rows(`CLOSE ${cursor}`);
  }

  async close(): Promise<void> {
    await this.client.end().catch(() => undefined);
  }

  #failed(error: unknown): CliError {
    const { code } = error as { code?: unknown };
    const hint = code === '42P01' ? 'Is it another database, or another --schema?' : undefined;
    return new CliError(`PostgreSQL at ${this.shown}: ${messageOf(error) || String(code)}`, hint, 'source_failed');
  }
}

/** The package of the project in this folder, its own or that of the queue that it uses. @throws {CliError} */
function findPg(): Pg {
  const project = join(process.cwd(), 'package.json');
  const owners = OWNERS.flatMap((name) => pathFrom(project, name) ?? []);
  const found = installed<Pg>('pg', [project, ...owners]);
  if (found) return found;
  const message = 'PostgreSQL is read with the package pg, which is not installed here.';
  throw new CliError(message, 'npm install pg', 'not_installed');
}
