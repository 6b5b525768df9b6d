/** Jobs that do not match the schema of their type: their errors and warnings. */
import { type ApiError, refusal } from '../job/errors';
import type { Misfit } from '../job/record';

/** What a queue does with them: nothing, accept them with a warning, or refuse them. */
export const SCHEMA_MODES = ['off', 'warn', 'strict'] as const;
export type SchemaMode = (typeof SCHEMA_MODES)[number];

const textOf = ({ path, message }: Misfit) => `${path}: ${message}`;

/** A warning to the producer, about the first of it. */
export function warningOf(type: string, misfits: readonly Misfit[]): string {
  const more = misfits.length > 1 ? ` (and ${misfits.length - 1} more)` : '';
  return `The job does not match the schema of ${type}: ${textOf(misfits[0] as Misfit)}${more}`;
}

/** 400: what does not fit, in `details.errors`. */
export function schemaValidation(type: string, misfits: readonly Misfit[]): ApiError {
  return refusal(400, 'schema_validation', `${warningOf(type, misfits)}`, {
    details: {
      field: (misfits[0] as Misfit).path,
      job_type: type,
      errors: misfits,
      validation_errors: misfits.map(textOf),
    },
    hint: `GET /ojs/v1/admin/schemas/${type} shows the schema.`,
  });
}

/** 503: the job was validated by outdated schemas. Never sent to a client: the sender fetches the present ones. */
export function schemasChanged(): ApiError {
  return refusal(503, 'unavailable', 'The schemas of jobs have changed; try again.', { type: SCHEMAS_CHANGED });
}

const SCHEMAS_CHANGED = 'schemas_changed';

export function haveSchemasChanged({ type }: { type?: string }): boolean {
  return type === SCHEMAS_CHANGED;
}
