import type { Check } from '../check';
import { type Action, action } from '../command';
import { projectChecks, serverChecks } from '../doctor';
import { CliError } from '../failure';
import { facts } from '../output';

const SUMMARY = 'check the project in this folder and the queue: configuration, key, versions, settings';

/** @param version of this program */
export const doctor = (version: string): Action =>
  action('doctor', SUMMARY, {}, async ({ tocsin, endpoint }) => {
    const checks = [...projectChecks(process.cwd()), ...(await serverChecks(tocsin, endpoint, version))];
    const bad = checks.filter(({ status }) => status === 'fail').length;
    const failed = `${bad} of ${checks.length} checks failed.`;
    const failure = bad > 0 ? new CliError(failed, undefined, 'unhealthy') : undefined;
    return { value: { ok: bad === 0, checks }, text: checksText(checks), failure };
  });

function checksText(checks: readonly Check[]): string {
  const width = Math.max(...checks.map(({ name }) => name.length));
  return facts(
    checks.map(({ name, status, message, hint }) => [
      status.toUpperCase(),
      `${name.padEnd(width)}  ${message}${hint ? `\n${' '.repeat(width + 8)}→ ${hint}` : ''}`,
    ]),
  );
}
