import type { Deployment } from '../../client/server';
import { action, list } from '../command';
import { CliError } from '../failure';
import { facts } from '../output';
import { settingsLines } from '../settings';

const FLAGS = {
  resetCrons: ['--reset <schedules>', "reset these schedules to the code, undoing operators' changes", list],
} as const;

/** Puts into effect what the code of a deployment declares, before anything happens there. */
export const apply = action(
  'apply',
  'apply what the deployed code declares: schedules, settings, limits',
  { flags: FLAGS },
  async ({ tocsin, endpoint: { url }, members }) => {
    const deployment = await tocsin.server.applyDeployment(members);
    const failure = deployment.inEffect ? undefined : notInEffect(url, deployment);
    return { value: { url, ...deployment }, text: appliedText(url, deployment), failure };
  },
);

/** What is in effect now, a line for each kind. */
export function appliedText(url: string, deployment: Deployment): string {
  const lines = settingsLines(deployment);
  if (lines.length === 0) return `The code deployed at ${url} declares nothing.`;
  const declared = facts(lines.map(({ name, message }) => [name, message]));
  return `${deployment.inEffect ? 'In effect' : 'Not in effect'} at ${url}\n${declared}`;
}

/** A part of it is refused, or another version has declared something else meanwhile, as while a deploy continues. */
export function notInEffect(url: string, { problems = [] }: Deployment): CliError {
  const why = problems.length > 0 ? `: ${problems.join(' ')}` : '.';
  return new CliError(`What the code at ${url} declares is not in effect${why}`, 'Then try again: npx tocsin apply');
}
