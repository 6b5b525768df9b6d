/** `tocsin serve`, `tocsin backup`, `tocsin restore` */
import { Command, InvalidArgumentError, Option } from 'commander';
import { durationMs } from '../../handler/duration';
import { integer, list, print } from '../command';
import type { Terminal } from '../output';
import { backUp, type Copied, restore } from '../serve/backup';
import { type ServeOptions, serve } from '../serve/serve';

/** Where the state is if nothing says. */
const STATE = 'tocsin-state';

/** A folder as it is given, each time the option stands there. */
const folders = (folder: string, before: string[] = []): string[] => [...before, folder];

function grace(text: string): number {
  const ms = durationMs(text);
  if (ms !== undefined && ms <= 3_600_000) return ms;
  throw new InvalidArgumentError('It must be a time of at most an hour, such as 30s.');
}

export function serveCommand(terminal: Terminal): Command {
  return new Command('serve')
    .description('serve the queue from this machine, without Cloudflare: on plain workerd, state in a folder')
    .option('--state <folder>', 'where everything is kept', STATE)
    .option('--host <address>', 'where to listen; without a key only on this machine', '127.0.0.1')
    .option('--port <n>', 'where to listen; 0: any that is free', integer(0, 65_535), 8787)
    .option('--config <file>', 'wrangler configuration of a Worker that holds the queue; default: that of this folder')
    .option('--no-config', 'serve the queue alone, whatever this folder has')
    .option('--env <name>', 'environment of the configuration')
    .option(
      '--handlers <[types=]folder>',
      'serve this handler Worker beside it, for these job types; repeatable',
      folders,
    )
    .option('--env-file <file>', 'file of lines NAME=value: API_KEYS and other variables of the Workers')
    .option('--pass-env <names>', 'pass these environment variables to the Workers', list)
    .option('--allow-network <block>', 'let Workers reach private, local, or a block such as 10.0.0.0/8', list)
    .option('--cluster <bucket>', 'experimental: share the queues with other processes, through s3://bucket/prefix')
    .option('--cluster-address <host:port>', 'where this process listens for the others; default: this machine only')
    .option('--cluster-advertise <host:port>', 'where the others reach this process, if that is another address')
    .option('--behind-proxy', 'trust X-Forwarded-Proto and CF-Connecting-IP, which a proxy in front sets')
    .option('--tls-cert <file>', 'serve HTTPS with this certificate chain (PEM)')
    .option('--tls-key <file>', 'the private key of the certificate (PEM)')
    .addOption(
      new Option('--grace <duration>', 'how long calls to handlers may take that run when it is ended')
        .argParser(grace)
        .default(30_000, '30s'),
    )
    .option('--pretty', 'print lines for humans, not JSON')
    .option('--json', 'print JSON lines, which is the default')
    .addHelpText('after', '\nSIGTERM or SIGINT ends it when what runs is done; a second one ends it at once.')
    .action(async (options: Partial<ServeOptions>) => {
      const { handlers = [], passEnv = [], allowNetwork = [], ...rest } = options;
      await serve(terminal, process.cwd(), { ...rest, handlers, passEnv, allowNetwork } as ServeOptions);
    });
}

export function backupCommand(terminal: Terminal): Command {
  return new Command('backup')
    .description('copy the state of tocsin serve as it is at one moment, while it serves or not')
    .argument('<folder>', 'where to; it must not exist, or be empty')
    .option('--state <folder>', 'the state folder', STATE)
    .option('--json', 'print JSON')
    .action(async (target: string, { state, json }: { state: string; json?: boolean }) => {
      const { heldMs, ...copied } = await backUp(state, target, terminal.now);
      const held = heldMs === undefined ? 'Nothing was running.' : `Writes were blocked for ${heldMs} ms.`;
      print(terminal, json, { ...copied, heldMs: heldMs ?? null }, () => `${said(copied)}\n${held}`);
    });
}

export function restoreCommand(terminal: Terminal): Command {
  return new Command('restore')
    .description('make a state folder for tocsin serve from a backup')
    .argument('<backup>', 'a folder that tocsin backup wrote')
    .option('--state <folder>', 'the new state folder; it must not exist, or be empty', STATE)
    .option('--json', 'print JSON')
    .action(async (backup: string, { state, json }: { state: string; json?: boolean }) => {
      const copied = await restore(backup, state);
      print(terminal, json, copied, () => said(copied));
    });
}

const said = ({ folder, files, bytes }: Copied) => `${folder}  ${files} files, ${(bytes / 1e6).toFixed(1)} MB`;
