/** The schemas of a deployment. A job names one by `schema`, `version` or `meta.schema_version`; else the latest. */
import { getOrInsert } from '../job/get-or-insert';
import type { JobBody, Misfit, SchemaStamp } from '../job/record';
import { cut, quote } from '../job/text';
import type { JsonSchema } from './check';
import { Validation, type ValuePlace } from './validation';
import { OutOfWork, type Work } from './work';

export interface RegisteredSchema {
  type: string;
  /** As a text; a whole number means the same as the number. */
  version: string;
  uri: string;
  /** Epoch ms. */
  created_at: number;
  schema: JsonSchema;
}

/** Sorts versions, the highest first: number by number where both have them, a release before what leads up to it. */
export function byVersion(a: { version: string }, b: { version: string }): number {
  const [[left, leftTail], [right, rightTail]] = [split(a.version), split(b.version)];
  for (let at = 0; at < Math.max(left.length, right.length); at++) {
    const [x = '0', y = '0'] = [left[at], right[at]];
    if (x === y) continue;
    const both = /^\d+$/.test(x) && /^\d+$/.test(y);
    return both ? Number(y) - Number(x) : x < y ? 1 : -1;
  }
  if (leftTail === rightTail) return 0;
  if (leftTail === '' || rightTail === '') return leftTail === '' ? -1 : 1;
  return leftTail < rightTail ? 1 : -1;
}

function split(version: string): [parts: string[], tail: string] {
  const [core = '', ...tail] = version.replace(/\+.*$/, '').split('-');
  return [core.split('.'), tail.join('-')];
}

/** Validates jobs against the schemas of one moment. */
export class Registry {
  private readonly types: ReadonlyMap<string, RegisteredSchema[]>;
  private readonly uris: ReadonlyMap<string, RegisteredSchema>;
  private readonly validators = new Map<RegisteredSchema, Validate>();

  /** @param stamp names the state of the schemas; undefined: there never were any */
  constructor(
    readonly stamp: SchemaStamp | undefined,
    schemas: readonly RegisteredSchema[],
  ) {
    this.types = Map.groupBy([...schemas].sort(byVersion), ({ type }) => type);
    this.uris = new Map(schemas.map((schema) => [schema.uri, schema]));
  }

  /** What of a job does not fit; empty: all does, or no schema applies. @param work what its request may still cost */
  misfits(type: string, body: string, work: Work): Misfit[] {
    const versions = this.types.get(type);
    if (!versions) return [];
    const job = JSON.parse(body) as JobBody;
    const meant = this.meant(versions, job);
    if ('path' in meant) return [meant];
    return getOrInsert(this.validators, meant, () => validatorOf(meant.schema))(job.args, work);
  }

  private meant(
    versions: readonly RegisteredSchema[],
    { type, schema, version, meta }: JobBody,
  ): RegisteredSchema | Misfit {
    const byUri = typeof schema === 'string' ? this.uris.get(schema) : undefined;
    if (byUri?.type === type) return byUri;
    const [path, named] = version === undefined ? ['meta.schema_version', meta.schema_version] : ['version', version];
    const [latest] = versions;
    if (named === undefined || named === null) return latest as RegisteredSchema;
    const found = versions.find((known) => known.version === String(named));
    if (found) return found;
    const known = versions.slice(0, 10).map((each) => each.version);
    return {
      path,
      message: `No schema of version ${quote(String(named))} is registered; there are: ${known.join(', ')}.`,
    };
  }
}

const MAX_MESSAGE = 300;

const TOO_MUCH: Misfit = {
  path: 'args',
  message: 'Validation takes more work than one request may use; send smaller arguments, or fewer jobs at once.',
};

/** Drafts in which a schema with `$ref` says nothing else. */
const REFERS_ALONE = /draft-0[467]/;

/** Finds what does not fit; nothing when all does. */
type Validate = (args: readonly unknown[], work: Work) => Misfit[];

/** A schema with `type: object` is about the first argument, any other about the list. Out of work: does not fit. */
export function validatorOf(schema: JsonSchema): Validate {
  const isAboutFirst = schema.type === 'object';
  const validation = new Validation(schema, REFERS_ALONE.test(String(schema.$schema ?? '')));
  const root = isAboutFirst ? 'args[0]' : 'args';
  return (args, work) => {
    try {
      return validation.find(isAboutFirst ? (args[0] ?? null) : args, work).map(({ place, message }) => ({
        path: root + pathOf(place),
        message: cut(message, MAX_MESSAGE),
      }));
    } catch (error) {
      if (error instanceof OutOfWork) return [TOO_MUCH];
      throw error;
    }
  };
}

/** `[0].customer.name` */
function pathOf(place: ValuePlace | undefined): string {
  if (!place) return '';
  const { name, above } = place;
  const isPlain = typeof name === 'string' && /^[\w$-]+$/.test(name) && !/^\d+$/.test(name);
  return `${pathOf(above)}${isPlain ? `.${name}` : typeof name === 'number' || /^\d+$/.test(name) ? `[${name}]` : `[${JSON.stringify(name)}]`}`;
}
