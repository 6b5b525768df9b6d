import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { Command } from 'commander';
import type { Deployment } from '../../client/server';
import { parseObject } from '../../job/envelope/fields';
import { TocsinError, UnauthorizedError } from '../../producer/errors';
import { action, list, print } from '../command';
import { type ConnectionOptions, connect, endpointOf } from '../connection';
import { CliError, EXIT } from '../failure';
import { facts, type Terminal } from '../output';
import { runnableWrangler } from '../project/wrangler';
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
function appliedText(url: string, deployment: Deployment): string {
  const lines = settingsLines(deployment);
  if (lines.length === 0) return `The code deployed at ${url} declares nothing.`;
  const declared = facts(lines.map(({ name, message }) => [name, message]));
  return `${deployment.inEffect ? 'In effect' : 'Not in effect'} at ${url}\n${declared}`;
}

/** A part of it is refused, or another version has declared something else meanwhile, as while a deploy continues. */
function notInEffect(url: string, { problems = [] }: Deployment): CliError {
  const why = problems.length > 0 ? `: ${problems.join(' ')}` : '.';
  return new CliError(`What the code at ${url} declares is not in effect${why}`, 'Then try again: npx tocsin apply');
}

/** @param file of `WRANGLER_OUTPUT_FILE_PATH`: a JSON object on each line */
export function deployedAt(file: string): string | undefined {
  if (!existsSync(file)) return undefined;
  for (const line of readFileSync(file, 'utf8').split('\n').reverse()) {
    const { type, targets } = parseObject(line) ?? {};
    if (type !== 'deploy' || !Array.isArray(targets)) continue;
    return targets.flatMap((target) => addressOf(String(target)) ?? [])[0];
  }
  return undefined;
}

/** The URL of a target like `shop.example.com (custom domain)`; undefined for schedules, queues and wildcards. */
function addressOf(target: string): string | undefined {
  if (/^https?:\/\//.test(target)) return target.replace(/\/$/, '');
  const [, host] = /^([a-z0-9-]+(?:\.[a-z0-9-]+)+)(?:\/\*)?(?: \(.*\))?$/i.exec(target) ?? [];
  return host && `https://${host}`;
}

/** A version that was replaced may answer for some seconds, and a new address takes as long to be known. */
const TRIES = 5;
const PAUSE_MS = 2_000;
const CLOCKS_DIFFER_MS = 5_000;

export function deployCommand(terminal: Terminal): Command {
  return new Command('deploy')
    .description('deploy the Worker in this folder, then apply what its code declares')
    .option('--url <url>', 'address of the queue; default: TOCSIN_URL, else as wrangler prints it')
    .option('--key <key>', 'API key (TOCSIN_KEY); without it the result is not confirmed')
    .option('--json', 'print JSON')
    .argument('[wrangler...]', 'further arguments for wrangler deploy')
    .allowUnknownOption()
    .action(async (more: string[], options: ConnectionOptions) => {
      const began = Date.now() - CLOCKS_DIFFER_MS;
      const printed = await deployed(more, options.json === true);
      if (more.includes('--dry-run')) return;
      const url = options.url ?? (terminal.env.TOCSIN_URL || printed);
      if (url === undefined) {
        const hint = 'Set --url or TOCSIN_URL, then run: npx tocsin apply';
        terminal.err(`tocsin: deployed, but its address is not known, so no schedule was started.\n→ ${hint}\n`);
        return print(terminal, options.json, { url: null, inEffect: null }, () => '');
      }
      const endpoint = endpointOf({ ...options, url }, terminal.env);
      if (endpoint.key === undefined) {
        await awaken(url);
        const unconfirmed = facts([
          ['asked', url],
          ['→', 'To confirm the result, set TOCSIN_KEY to a key with the scope admin:write.'],
        ]);
        return print(terminal, options.json, { url, inEffect: null }, () => unconfirmed);
      }
      const { server } = connect({ ...options, url }, terminal);
      const isNew = ({ appliedAt }: Deployment) => appliedAt !== null && Date.parse(appliedAt) >= began;
      const deployment = await persistently(() => server.applyDeployment(), isNew);
      print(terminal, options.json, { url, ...deployment }, () => appliedText(url, deployment));
      if (!deployment.inEffect) throw notInEffect(url, deployment);
    });
}

/** Runs wrangler. @returns the address that it deployed to, if it reports one */
async function deployed(more: readonly string[], json: boolean): Promise<string | undefined> {
  const { node, script } = runnableWrangler(process.cwd());
  const notes = mkdtempSync(join(tmpdir(), 'tocsin-deploy-'));
  try {
    const file = join(notes, 'output.ndjson');
    // Standard output is for JSON alone.
    const child = spawn(node, [script, 'deploy', ...more], {
      stdio: ['inherit', json ? 2 : 'inherit', 'inherit'],
      env: { ...process.env, WRANGLER_OUTPUT_FILE_PATH: file },
    });
    const [code] = (await once(child, 'exit')) as [code: number | null];
    if (code !== 0) {
      throw new CliError(`wrangler deploy exited with code ${code}.`, undefined, 'ended', code ?? EXIT.failure);
    }
    return deployedAt(file);
  } finally {
    rmSync(notes, { recursive: true, force: true });
  }
}

/** Any request has the Worker put into effect what it declares, beside its answer. */
async function awaken(url: string): Promise<void> {
  const ask = async () => {
    const answer = await fetch(`${url.replace(/\/$/, '')}/ojs/v1/health`);
    if (!answer.ok)
      throw new CliError(`${url} answered ${answer.status}.`, 'Check the deployment with: npx tocsin doctor');
  };
  await persistently(ask, () => true);
}

/** Asks until the answer is as wanted, or there is no point in asking on. @throws {Error} the last failure */
async function persistently<T>(ask: () => Promise<T>, isWanted: (answer: T) => boolean): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      const answer = await ask();
      if (isWanted(answer) || tries === TRIES) return answer;
    } catch (error) {
      const isWrong = error instanceof TocsinError && error.code === 'invalid_configuration';
      if (isWrong || error instanceof UnauthorizedError || tries === TRIES) throw error;
    }
    await pause(PAUSE_MS);
  }
}
