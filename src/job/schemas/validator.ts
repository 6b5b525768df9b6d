import { cut } from '../text';
import type { JsonSchema } from './check';
import type { Misfit } from './misfit';
import { Validation, type ValuePlace } from './validation';
import { OutOfWork, type Work } from './work';

const MAX_MESSAGE = 300;

const TOO_MUCH: Misfit = {
  path: 'args',
  message: 'Validation takes more work than one request may use; send smaller arguments, or fewer jobs at once.',
};

/** Drafts in which a schema with `$ref` says nothing else. */
const REFERS_ALONE = /draft-0[467]/;

/** Finds what does not fit; nothing when all does. */
export type Validate = (args: readonly unknown[], work: Work) => Misfit[];

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
