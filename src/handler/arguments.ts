/** Arguments checked by a schema of any library that follows Standard Schema, such as zod, valibot or arktype. */
import { OutcomeError } from './outcomes';
import { isObject } from './protocol';
import type { SchemaIssue, StandardSchema } from './schema';
import type { HandlerContext, HandlerFunction, Job } from './types';

/** The arguments of a job are not what its handler takes. Another run would fail the same, so there is none. */
export class InvalidArgsError extends OutcomeError {}

const MAX_ISSUES = 20;

export function isSchema(value: unknown): value is StandardSchema<unknown, readonly unknown[]> {
  // Some libraries make functions.
  const standard: unknown =
    isObject(value) || typeof value === 'function' ? Reflect.get(value, '~standard') : undefined;
  return isObject(standard) && typeof standard.validate === 'function';
}

/** The handler, run with what the schema makes of the arguments. */
export function withArguments(
  schema: StandardSchema<unknown, readonly unknown[]>,
  run: HandlerFunction,
): HandlerFunction {
  return async (job: Job, ctx: HandlerContext) => {
    const own = await checkedArgs(schema, job);
    return await run(own, { ...ctx, job: own });
  };
}

/** The job with what the schema makes of its arguments. @throws {InvalidArgsError} when they do not match */
export async function checkedArgs(schema: StandardSchema<unknown, readonly unknown[]>, job: Job): Promise<Job> {
  const checked = await schema['~standard'].validate(job.args);
  if (checked.issues) throw invalid(checked.issues);
  return { ...job, args: checked.value as unknown[] };
}

function invalid(all: readonly SchemaIssue[]): InvalidArgsError {
  const issues = all.slice(0, MAX_ISSUES).map(({ message, path }) => ({ message, path: path?.map(keyOf) ?? [] }));
  const [first] = issues;
  const where = first === undefined || first.path.length === 0 ? '' : ` at ${['args', ...first.path].join('.')}`;
  const message = `The arguments do not match the handler's schema: ${first?.message ?? 'invalid'}${where}`;
  const details = { issues, ...(all.length > issues.length && { omitted: all.length - issues.length }) };
  return new InvalidArgsError(message, { code: 'invalid_args', retryable: false }, { type: 'invalid_args', details });
}

function keyOf(segment: PropertyKey | { readonly key: PropertyKey }): string | number {
  const key = typeof segment === 'object' ? segment.key : segment;
  return typeof key === 'number' ? key : String(key);
}
