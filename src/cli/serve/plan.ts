/** Which Workers are served, and how they are bound to each other: the queue first, its handlers after it. */
import { basename, resolve } from 'node:path';
import { isObject, parseObject } from '../../job/envelope/fields';
import { CliError, usageError } from '../failure';
import { OF_THE_QUEUE } from './variables';
import { configIn, handlerIn, holdsQueue, QUEUE_ALONE, type ServedWorker, workerOf } from './worker';

export interface WorkersOptions {
  /** A wrangler configuration; false: the queue alone; absent: the one of this folder, if there is one. */
  config?: string | false;
  env?: string | undefined;
  /** Folders with handlers: `[pattern=]folder`. */
  handlers: readonly string[];
}

export interface Plan {
  workers: ServedWorker[];
  table?: Record<string, unknown>;
}

/** Decides which Workers are served. @param table `HANDLERS` of the environment, as text @throws {CliError} */
export function planWorkers(folder: string, options: WorkersOptions, table: string | undefined): Plan {
  const queue = queueWorker(folder, options);
  const named = options.handlers.map((given) => {
    const [, pattern, path] = /^(?:((?:[\w.-]+\/)?(?:\*|[a-z][\w.-]*(?:\.\*)?))=)?(.+)$/.exec(given) ?? [];
    return { pattern, worker: withOwnKeys(handlerIn(resolve(folder, path ?? given), options.env)) };
  });
  const workers = [queue, ...named.map(({ worker }) => worker)];
  const twice = workers.find(({ name }, at) => workers.findIndex((one) => one.name === name) !== at);
  if (twice) throw usageError(`Two Workers are named ${twice.name}.`, 'Name them in their wrangler configurations.');
  const handlers = readTable(table ?? queue.vars.HANDLERS);
  const bound = [...queue.services];
  let isChanged = false;
  for (const { pattern, worker } of named) {
    let binding = bound.find(({ service }) => service === worker.name)?.binding;
    if (binding === undefined) {
      binding = freeName(worker.name, queue, bound);
      bound.push({ binding, service: worker.name });
    }
    const isMapped = Object.values(handlers).some((entry) => bindingOf(entry) === binding);
    if (pattern === undefined && isMapped) continue;
    const key = pattern ?? '*';
    if (Object.hasOwn(handlers, key) && bindingOf(handlers[key]) !== binding) {
      const hint = `Say which jobs are for ${worker.name}: --handlers 'email.*=${basename(worker.folder)}'`;
      throw usageError(`The jobs "${key}" have a handler already.`, hint);
    }
    handlers[key] = binding;
    isChanged = true;
  }
  workers[0] = { ...queue, services: bound };
  checkServices(workers);
  return { workers, ...(isChanged && { table: handlers }) };
}

function queueWorker(folder: string, { config: file, env, handlers }: WorkersOptions): ServedWorker {
  const found = file === false ? undefined : configIn(folder, file);
  if (!found) {
    if (env !== undefined) throw usageError('--env names an environment of a wrangler configuration; there is none.');
    return QUEUE_ALONE;
  }
  if (holdsQueue(found.config)) return workerOf(found.config, found.folder, env);
  // A folder of handlers, which are served beside the queue alone.
  if (file === undefined && handlers.length > 0) return QUEUE_ALONE;
  const hint = 'npx tocsin init adds it; --no-config serves the queue alone, and --handlers . this Worker beside it.';
  throw new CliError(`The Worker of ${found.config.file} does not hold the queue.`, hint);
}

/** Two Workers may have classes of the same name. */
function withOwnKeys(worker: ServedWorker): ServedWorker {
  return { ...worker, classes: worker.classes.map((one) => ({ ...one, key: `${worker.name}.${one.key}` })) };
}

function readTable(given: unknown): Record<string, unknown> {
  if (given === undefined || given === '') return {};
  const table = typeof given === 'string' ? parseObject(given) : given;
  if (isObject(table)) return { ...table };
  throw new CliError('HANDLERS is not a JSON object.', 'Write it like {"email.*": "EMAIL"}.');
}

const bindingOf = (entry: unknown): unknown => (isObject(entry) ? entry.binding : entry);

/** A binding for a Worker: `shop-jobs` is SHOP_JOBS. */
function freeName(name: string, queue: ServedWorker, bound: readonly { binding: string }[]): string {
  const plain = name
    .toUpperCase()
    .replace(/[^A-Z0-9]+/g, '_')
    .replace(/^(?=\d)/, '_');
  const taken = new Set([...bound.map(({ binding }) => binding), ...Object.keys(queue.vars), ...OF_THE_QUEUE]);
  for (let count = 1; ; count++) {
    const binding = count === 1 ? plain : `${plain}_${count}`;
    if (!taken.has(binding)) return binding;
  }
}

function checkServices(workers: readonly ServedWorker[]): void {
  const names = new Set(workers.map(({ name }) => name));
  for (const { name, services, objects } of workers) {
    for (const { binding, service } of [...services, ...objects]) {
      if (service === undefined || names.has(service)) continue;
      const message = `${name} binds ${binding} to the Worker ${service}, which is not served here.`;
      throw new CliError(message, 'Name its folder with --handlers.');
    }
  }
}
