/** The options of a job under the names that they have in TypeScript. What becomes of each is said in `job/options`. */
import { OPTION_NAMES, type OptionFacts, type OptionName, type OptionsThat, optionsThat } from '../job/options';
import type { JobEnvelope } from './envelope';
import { type Camel, camelName, memberOf, wireName } from './names';

export type ClientOption = Camel<Exclude<OptionName, OptionsThat<'foreign'>>>;

const FOREIGN: readonly OptionName[] = optionsThat('foreign');

const offered = (names: readonly OptionName[]) =>
  names.filter((name) => !FOREIGN.includes(name)).map((name) => camelName(name));

export const CLIENT_OPTIONS = offered(OPTION_NAMES) as ClientOption[];

export function clientOptionsThat<Fact extends keyof OptionFacts>(
  fact: Fact,
): (Camel<OptionsThat<Fact>> & ClientOption)[] {
  return offered(optionsThat(fact)) as (Camel<OptionsThat<Fact>> & ClientOption)[];
}

/** What the server makes of what was written. */
const READ = optionsThat('receipt').map((name) => camelName(name)) as Camel<OptionsThat<'receipt'>>[];
/** The options that a job has as they were given, by their names on the wire. */
const KEPT: ReadonlyMap<string, keyof JobEnvelope> = new Map(
  clientOptionsThat('stored')
    .filter((name) => !READ.some((read) => read === name))
    .map((name) => [wireName(name), name]),
);

/** Adds the options that a job has as they were given. @param given in the wire's names */
export function addKept(job: Partial<JobEnvelope>, given: Record<string, unknown>): void {
  for (const onWire in given) {
    const name = KEPT.get(onWire);
    if (name !== undefined) (job as Record<string, unknown>)[name] = memberOf(onWire, given[onWire], camelName);
  }
}

/** Adds those that it has as the server has read them. @param answer about the job */
export function addRead(job: Partial<JobEnvelope>, answer: Partial<JobEnvelope>): void {
  for (const name of READ) if (answer[name] !== undefined) (job as Record<string, unknown>)[name] = answer[name];
}
