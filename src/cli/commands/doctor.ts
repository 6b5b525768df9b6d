/** `tocsin doctor` */
import type { Command } from 'commander';
import { remote, session } from '../command';
import type { ConnectionOptions } from '../connection';
import { projectChecks, serverChecks } from '../doctor';
import { CliError } from '../failure';
import { facts, type Terminal } from '../output';

export function doctorCommand(terminal: Terminal, version: string): Command {
  return remote(
    'doctor',
    'check the project in this folder and the queue: configuration, key, versions, settings',
  ).action(async (options: ConnectionOptions) => {
    const { tocsin, endpoint, answer } = session(terminal, options);
    const checks = [...projectChecks(process.cwd()), ...(await serverChecks(tocsin, endpoint, version))];
    const bad = checks.filter(({ status }) => status === 'fail');
    answer({ ok: bad.length === 0, checks }, () => {
      const width = Math.max(...checks.map(({ name }) => name.length));
      return facts(
        checks.map(({ name, status, message, hint }) => [
          status.toUpperCase(),
          `${name.padEnd(width)}  ${message}${hint ? `\n${' '.repeat(width + 8)}→ ${hint}` : ''}`,
        ]),
      );
    });
    if (bad.length > 0) throw new CliError(`${bad.length} of ${checks.length} checks failed.`, undefined, 'unhealthy');
  });
}
