/** Durable Object classes of a configuration, by `migrations` (a history) or `exports` (a declaration), never both. */
import { isObject } from '../../job/envelope/fields';

type Json = Record<string, unknown>;

export interface Declaring {
  migrations?: unknown;
  exports?: unknown;
}

export interface MadeClass {
  className: string;
  key: string;
  sql: boolean;
}

/** How wrangler writes an entry of `exports` for a class with SQLite. */
export const SQLITE_EXPORT = { type: 'durable-object', storage: 'sqlite' } as const;

/** Which of the two a part uses; undefined: none. */
export function declaringBy({ migrations, exports }: Declaring): keyof Declaring | undefined {
  if (Array.isArray(migrations) && migrations.length > 0) return 'migrations';
  return Object.keys(objectOf(exports)).length > 0 ? 'exports' : undefined;
}

/** The classes that are left after all migrations, or that are declared live. */
export const classesMade = (part: Declaring): MadeClass[] =>
  declaringBy(part) === 'exports' ? exported(objectOf(part.exports)) : migrated(entriesOf(part.migrations));

function migrated(migrations: readonly Json[]): MadeClass[] {
  const classes = new Map<string, MadeClass>();
  const make = (names: unknown, sql: boolean) => {
    for (const className of listOf(names).map(String)) classes.set(className, { className, key: className, sql });
  };
  for (const migration of migrations) {
    make(migration.new_sqlite_classes, true);
    make(migration.new_classes, false);
    for (const { from, to } of entriesOf(migration.renamed_classes)) {
      const known = classes.get(String(from));
      if (known) classes.set(String(to), { ...known, className: String(to) });
      classes.delete(String(from));
    }
    for (const name of listOf(migration.deleted_classes)) classes.delete(String(name));
  }
  return [...classes.values()];
}

/** The entry of a class that was renamed names its new class, which has an entry of its own. */
function exported(exports: Json): MadeClass[] {
  const entries = Object.entries(exports).map(([name, entry]) => [name, objectOf(entry)] as const);
  const objects = entries.filter(([, { type }]) => type === SQLITE_EXPORT.type);
  const formerOf = new Map(objects.map(([name, { renamed_to }]) => [renamed_to, name]));
  const firstOf = (name: string, steps = objects.length): string => {
    const former = formerOf.get(name);
    return former === undefined || steps === 0 ? name : firstOf(former, steps - 1);
  };
  return objects
    .filter(([, { storage }]) => storage !== undefined)
    .map(([className, { storage }]) => ({
      className,
      key: firstOf(className),
      sql: storage === SQLITE_EXPORT.storage,
    }));
}

export const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

const objectOf = (value: unknown): Json => (isObject(value) ? value : {});
const entriesOf = (value: unknown): Json[] => listOf(value).filter(isObject);
