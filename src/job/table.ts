/** Objects with the same members as columns: a message of a hundred objects would cost more than storing them. */

/** A value that all rows have, or one for each. Undefined: the row has no such member. */
type Column = { all: unknown } | { each: unknown[] };

export interface Table<T> {
  rows: number;
  columns: { [Name in keyof T]?: Column };
}

/** @param rows that have the same members, more or less */
export function toTable<T extends object>(rows: readonly T[]): Table<T> {
  const names = new Set<keyof T>();
  for (const row of rows) for (const name in row) names.add(name);
  const columns: Table<T>['columns'] = {};
  for (const name of names) {
    const [first] = rows;
    const value = first?.[name];
    columns[name] = rows.every((row) => isSame(row[name], value))
      ? { all: value }
      : { each: rows.map((row) => row[name]) };
  }
  return { rows: rows.length, columns };
}

/** The rows. What all of them have is shared among them: who changes it makes a copy. */
export function fromTable<T extends object>({ rows, columns }: Table<T>): T[] {
  const shared: Partial<T> = {};
  const own: [name: keyof T, values: unknown[]][] = [];
  for (const [name, column] of Object.entries(columns) as [keyof T, Column][]) {
    if ('each' in column) own.push([name, column.each]);
    else if (column.all !== undefined) shared[name] = column.all as T[keyof T];
  }
  return Array.from({ length: rows }, (_, index) => {
    const row: Partial<T> = { ...shared };
    for (const [name, values] of own) {
      const value = values[index];
      if (value !== undefined) row[name] = value as T[keyof T];
    }
    return row as T;
  });
}

export function columnOf<T, Name extends keyof T>({ rows, columns }: Table<T>, name: Name): (T[Name] | undefined)[] {
  const column: Column = columns[name] ?? { all: undefined };
  return 'each' in column ? (column.each as T[Name][]) : Array.from({ length: rows }, () => column.all as T[Name]);
}

const isSame = (a: unknown, b: unknown): boolean => a === b || (isEmpty(a) && isEmpty(b));

/** An object without members, such as the history of a new job. */
function isEmpty(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Object.getPrototypeOf(value) !== Object.prototype) return false;
  for (const _ in value) return false;
  return true;
}
