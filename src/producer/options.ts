/** The options of a job under the names that they have in TypeScript. What becomes of each is said in `job/options`. */
import { OPTION_NAMES, type OptionFacts, type OptionName, type OptionsThat, optionsThat } from '../job/options';
import type { JobEnvelope } from './envelope';
import { type Camel, camelName } from './names';

/** The options that a client offers. */
export type ClientOption = Camel<Exclude<OptionName, OptionsThat<'foreign'>>>;

const FOREIGN: readonly OptionName[] = optionsThat('foreign');

const offered = (names: readonly OptionName[]) =>
  names.filter((name) => !FOREIGN.includes(name)).map((name) => camelName(name));

export const CLIENT_OPTIONS = offered(OPTION_NAMES) as ClientOption[];

/** Those of which this is so. */
export function clientOptionsThat<Fact extends keyof OptionFacts>(
  fact: Fact,
): (Camel<OptionsThat<Fact>> & ClientOption)[] {
  return offered(optionsThat(fact)) as (Camel<OptionsThat<Fact>> & ClientOption)[];
}

/** What the server makes of what was written. */
const READ = optionsThat('receipt').map((name) => camelName(name)) as Camel<OptionsThat<'receipt'>>[];
const KEPT = clientOptionsThat('stored').filter((name) => !READ.some((read) => read === name));

function pick(job: Partial<JobEnvelope>, names: readonly (keyof JobEnvelope)[]): Partial<JobEnvelope> {
  const picked: Record<string, unknown> = {};
  for (const name of names) if (job[name] !== undefined) picked[name] = job[name];
  return picked;
}

/** The options that a job has as they were given. */
export const keptOf = (given: Partial<JobEnvelope>): Partial<JobEnvelope> => pick(given, KEPT);

/** Those that it has as the server has read them. @param answer about the job */
export const readOf = (answer: Partial<JobEnvelope>): Partial<JobEnvelope> => pick(answer, READ);
