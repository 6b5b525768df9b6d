/** The program: its commands, and the one place where their failures become exit codes. */
import { Command, CommanderError } from 'commander';
import { commandOf, warningsOf } from './command';
import { crons } from './commands/crons';
import { dead, failures } from './commands/dead';
import { apply, deployCommand } from './commands/deploy';
import { audit, doctor, maintenance, token } from './commands/deployment';
import { devCommand } from './commands/dev';
import { enqueue } from './commands/enqueue';
import { exporting, importing } from './commands/export';
import { groups, queues } from './commands/groups';
import { initCommand } from './commands/init';
import { job } from './commands/job';
import { changes, jobs } from './commands/jobs';
import { keys } from './commands/keys';
import { mcp } from './commands/mcp';
import { migrating } from './commands/migrate';
import { limits, pools } from './commands/pools';
import { backupCommand, restoreCommand, serveCommand } from './commands/serve';
import { tail } from './commands/tail';
import { schemas, targets } from './commands/targets';
import { topCommand } from './commands/top';
import { alerts, webhooks } from './commands/webhooks';
import { workflows } from './commands/workflows';
import { DEFAULT_URL, withoutPassword } from './connection';
import { EXIT, failureOf } from './failure';
import { optionIn } from './option';
import { jsonText, notice, type Terminal } from './output';

export function createProgram(terminal: Terminal, version: string): Command {
  const program = new Command('tocsin')
    .description('A durable job queue in your Worker: create, inspect and operate it.')
    .version(version, '--version', 'print the version')
    .showSuggestionAfterError()
    .addHelpText('after', '\nEvery command takes --json. For its options: tocsin <command> --help');
  const commands = [
    initCommand(terminal, version, '.'),
    devCommand(terminal),
    deployCommand(terminal),
    serveCommand(terminal),
    backupCommand(terminal),
    restoreCommand(terminal),
    ...[apply, enqueue, jobs, ...job, ...changes, dead, failures, queues, groups, exporting, importing, targets, tail],
    topCommand(terminal),
    ...[maintenance, crons, workflows, limits, pools, schemas, alerts, webhooks, migrating, audit, keys, token, mcp],
    doctor(version),
  ];
  for (const one of commands) program.addCommand(one instanceof Command ? one : commandOf(terminal, one));
  return program;
}

/** Runs the program. @param args without the names of node and of the script @returns the exit code */
export async function run(program: Command, args: readonly string[], terminal: Terminal): Promise<number> {
  for (const command of everyCommand(program)) {
    command.exitOverride().configureOutput({
      writeOut: (text) => terminal.out(text),
      writeErr: () => undefined,
      outputError: () => undefined,
    });
  }
  const json = args.includes('--json');
  try {
    if (args.length === 0 && program.commands.length > 0) {
      terminal.out(program.helpInformation());
      return EXIT.usage;
    }
    await program.parseAsync(args, { from: 'user' });
    return EXIT.ok;
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return EXIT.ok;
    const url = withoutPassword(optionIn(args, '--url').value ?? (terminal.env.TOCSIN_URL || DEFAULT_URL));
    const key = optionIn(args, '--key').value ?? (terminal.env.TOCSIN_KEY || undefined);
    const { exitCode, ...failure } =
      error instanceof CommanderError ? usageFailure(error, program, args) : failureOf(error, { url, key });
    const { message, hint } = failure;
    if (json) terminal.err(`${jsonText({ error: failure, ...warningsOf(terminal) })}\n`);
    else notice(terminal, `${program.name()}: ${message}${hint ? `\n→ ${hint}` : ''}`);
    return exitCode;
  }
}

export function* everyCommand(command: Command): Generator<Command> {
  yield command;
  for (const child of command.commands) yield* everyCommand(child);
}

/** A shell makes several arguments of a value with spaces, and file names of a `*`. */
const QUOTE = "Put quotes around a value that has spaces or a *, such as --expression '0 2 * * *'.";

const BEHIND = 'Write options behind the command: tocsin queues --url …';

function usageFailure(error: CommanderError, program: Command, args: readonly string[]) {
  const [first = '', ...rest] = error.message.replace(/^error: /, '').split('\n');
  const command = args.flatMap((arg) => program.commands.find((one) => one.name() === arg) ?? [])[0];
  // An option that stands before it is not one of the program; what follows may be a key.
  const name = command?.name() ?? '';
  const below = command?.commands.find((one) => args.includes(one.name()));
  const isValue =
    error.code === 'commander.excessArguments' && (!command?.commands.length || !first.includes(`'${name}'`));
  const suggestion = rest.join(' ').replace(/[()]/g, '').trim();
  const message = /^\(outputHelp\)/.test(first) ? 'Which command?' : first;
  return {
    code: 'usage',
    message: message.charAt(0).toUpperCase() + message.slice(1),
    hint:
      suggestion ||
      (isValue && QUOTE) ||
      (error.code === 'commander.unknownOption' && args[0]?.startsWith('-') && BEHIND) ||
      [program.name(), name, below?.name(), '--help'].filter(Boolean).join(' '),
    exitCode: EXIT.usage,
  };
}
