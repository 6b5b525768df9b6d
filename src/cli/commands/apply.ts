/** `tocsin apply` */
import type { Command } from 'commander';
import type { Deployment } from '../../client/server';
import { list, remote, session } from '../command';
import type { ConnectionOptions } from '../connection';
import { CliError } from '../failure';
import { facts, type Terminal } from '../output';
import { settingsLines } from '../settings';

interface Options extends ConnectionOptions {
  reset?: string[];
}

/** Puts into effect what the code of a deployment declares, before anything happens there. */
export function applyCommand(terminal: Terminal): Command {
  return remote('apply', 'apply what the deployed code declares: schedules, settings, limits')
    .option('--reset <schedules>', "reset these schedules to the code, undoing operators' changes", list)
    .action(async (options: Options) => {
      const { tocsin, endpoint, answer } = session(terminal, options);
      const { url } = endpoint;
      const deployment = await tocsin.server.applyDeployment({ ...(options.reset && { resetCrons: options.reset }) });
      answer({ url, ...deployment }, () => appliedText(url, deployment));
      if (!deployment.inEffect) throw notInEffect(url, deployment);
    });
}

/** What is in effect now, a line for each kind. */
export function appliedText(url: string, deployment: Deployment): string {
  const lines = settingsLines(deployment);
  if (lines.length === 0) return `The code deployed at ${url} declares nothing.`;
  const said = facts(lines.map(({ name, message }) => [name, message]));
  return `${deployment.inEffect ? 'In effect' : 'Not in effect'} at ${url}\n${said}`;
}

/** A part of it is refused, or another version has declared something else meanwhile, as while a deploy continues. */
export function notInEffect(url: string, { problems = [] }: Deployment): CliError {
  const why = problems.length > 0 ? `: ${problems.join(' ')}` : '.';
  return new CliError(`What the code at ${url} declares is not in effect${why}`, 'Then try again: npx tocsin apply');
}
