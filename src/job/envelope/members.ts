/** Objects read by a table of their members: names, types, what is accepted and the JSON Schema follow from it. */

import { type ApiError, invalidPolicy, invalidRequest } from '../errors';
import { notKnown } from '../near-miss';
import { describe, described, type Reader, readObject, type Schema } from './fields';

type RequiredMember<T> = Reader<T> & { required: true };
type NullableMember<T> = Reader<T | null> & { nullable: true };

/** What each member is read by: as it is, or marked by {@link required} or {@link nullable}. */
export type Members = Readonly<Record<string, Reader<unknown> & { required?: true; nullable?: true }>>;

type Read<M> = M extends Reader<infer T> ? T : never;

export type MembersOf<M extends Members> = {
  [N in keyof M as M[N] extends RequiredMember<unknown> ? N : never]: Read<M[N]>;
} & {
  [N in keyof M as M[N] extends RequiredMember<unknown> ? never : N]?: Exclude<Read<M[N]>, undefined>;
};

/** A reader of objects. A field without a name is the request itself: the paths of its members are their names. */
export interface ObjectReader<T> extends Reader<T> {
  /** The members that it knows, in the order of their table. */
  readonly names: readonly string[];
}

/** How {@link readMembers} refuses a member that is not in the table. @param names those that are */
export type Refuse = (path: string, names: readonly string[]) => ApiError;

/** 400. */
export const notMember: Refuse = (path, names) => invalidRequest(path, `${path} ${notKnown(path, names)}`);
/** 422, in a policy or a setting. */
export const notInPolicy: Refuse = (path, names) => invalidPolicy(path, notKnown(path, names));

/** Marks a member as required; a {@link nullable} one may be null. */
export function required<T>(read: Reader<T> & { nullable?: true }): RequiredMember<T> {
  const copy: Reader<T> = (value, field) => read(value, field);
  const { nullable } = read;
  return Object.assign(copy, { schema: () => describe(read), required: true as const, ...(nullable && { nullable }) });
}

export function nullable<T>(read: Reader<T>): NullableMember<T> {
  const copy: Reader<T | null> = (value, field) => (value === null ? null : read(value, field));
  return Object.assign(copy, { schema: () => orNull(describe(read)), nullable: true as const });
}

function orNull(schema: Schema): Schema {
  const { type, enum: words } = schema;
  if (type === undefined) return { anyOf: [schema, { type: 'null' }] };
  return { ...schema, type: [type, 'null'].flat(), ...(Array.isArray(words) && { enum: [...words, null] }) };
}

/** A reader of objects; null and absent members are left out. @param refuse the error for others; absent: ignored */
export function readMembers<M extends Members>(members: M, refuse?: Refuse): ObjectReader<MembersOf<M>> {
  const names = Object.keys(members);
  const read: Reader<MembersOf<M>> = (value, field) => {
    const given = readObject(value, field);
    const prefix = field === '' ? '' : `${field}.`;
    if (refuse) {
      const unknown = Object.keys(given).find((name) => !Object.hasOwn(members, name));
      if (unknown !== undefined) throw refuse(prefix + unknown, names);
    }
    const result: Record<string, unknown> = {};
    for (const name of names) {
      const member = members[name] as Members[string];
      const written = given[name];
      if (written === undefined || (written === null && !member.nullable)) {
        if (member.required) throw invalidRequest(prefix + name, `${prefix}${name} is required.`);
        continue;
      }
      const read = member(written, prefix + name);
      if (read !== undefined) result[name] = read;
    }
    return result as MembersOf<M>;
  };
  return Object.assign(
    described(() => schemaOf(members, refuse !== undefined), read),
    { names },
  );
}

/** An object with these members. @param closed has it no others? */
export function schemaOf(members: Members, closed = false): Schema {
  const entries = Object.entries(members);
  const musts = entries.flatMap(([name, read]) => (read.required ? [name] : []));
  return {
    type: 'object',
    properties: Object.fromEntries(entries.map(([name, read]) => [name, describe(read)])),
    ...(musts.length > 0 && { required: musts }),
    ...(closed && { additionalProperties: false }),
  };
}
