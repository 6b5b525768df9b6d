/** Members of objects that are keyed by names of users, such as `constructor`. */

/** The member of this name that the object itself has, never one that all objects have. */
export const own = <T>(record: Readonly<Record<string, T>>, name: string): T | undefined =>
  Object.hasOwn(record, name) ? record[name] : undefined;

/** The text, unless it is empty or none. */
export const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;
