/** A pool: queues from which workers take jobs together, each its portion. */
import {
  defined,
  isObject,
  optional,
  readInteger,
  readList,
  readObject,
  readQueueName,
  readWord,
} from '../job/envelope/fields';
import { invalidRequest } from '../job/errors';
import { own } from '../job/own';

/** `strict`: in the order in which they are named. Others: each has its portion, none starves. */
export const POOL_STRATEGIES = ['strict', 'round-robin', 'weighted'] as const;
export type PoolStrategy = (typeof POOL_STRATEGIES)[number];

const ALIASES: Readonly<Record<string, PoolStrategy>> = {
  fair: 'round-robin',
  round_robin: 'round-robin',
  weighted_fair: 'weighted',
  priority: 'strict',
};

export interface Pool {
  name: string;
  strategy: PoolStrategy;
  queues: string[];
  /** By queue; 1 where nothing is said. */
  weights: Record<string, number>;
  /** Jobs of its queues that may run at once when a worker of the pool gets another one. */
  concurrency?: number;
}

/** Queues of one pool at most: a fetch that finds nothing asks them all. */
const MAX_QUEUES = 50;

/** Queues written as an object: each name with its weight, or an object that has it. @throws {ApiError} 400 */
function fromObject(queues: Record<string, unknown>, hasWeights: boolean) {
  if (hasWeights) throw invalidRequest('weights', 'weights cannot be combined with queues that have their own.');
  const weights = Object.entries(queues).flatMap(([queue, value]) => {
    const weight = isObject(value) ? value.weight : value;
    return (weight ?? null) === null ? [] : [[queue, readWeight(weight, `queues.${queue}`)] as const];
  });
  return { queues: Object.keys(queues), weights: weights.length > 0 ? Object.fromEntries(weights) : null };
}

/** Reads a pool as an operator writes it. @throws {ApiError} 400 */
export function readPool(name: string, body: Record<string, unknown>): Pool {
  if (isObject(body.queues)) {
    return readPool(name, { ...body, ...fromObject(body.queues, (body.weights ?? null) !== null) });
  }
  const queues = [...new Set(readList(MAX_QUEUES, readQueueName)(body.queues ?? [], 'queues'))];
  if (queues.length === 0) throw invalidRequest('queues', 'queues must name at least one queue.');
  const given = (body.weights ?? null) !== null;
  const usual = given ? 'weighted' : 'round-robin';
  const strategy = optional(body, 'strategy', readStrategy) ?? usual;
  if (given && strategy !== 'weighted') {
    throw invalidRequest('weights', `weights have no effect with the strategy ${strategy}; use weighted.`);
  }
  const weights = optional(body, 'weights', (value, field) => readWeights(value, field, queues)) ?? {};
  return {
    name,
    strategy,
    queues,
    weights,
    ...defined({ concurrency: optional(body, 'concurrency', readConcurrency) }),
  };
}

const readConcurrency = readInteger(1, 1_000_000);
const readWeight = readInteger(1, 1_000);

const readStrategy = (value: unknown, field: string): PoolStrategy => {
  const known = typeof value === 'string' && Object.hasOwn(ALIASES, value) ? ALIASES[value] : value;
  return readWord(POOL_STRATEGIES)(known, field);
};

function readWeights(value: unknown, field: string, queues: readonly string[]): Record<string, number> {
  const weights: Record<string, number> = {};
  for (const [queue, weight] of Object.entries(readObject(value, field))) {
    if (!queues.includes(queue))
      throw invalidRequest(`${field}.${queue}`, `${field}.${queue} is not one of its queues.`);
    weights[queue] = readWeight(weight, `${field}.${queue}`);
  }
  return weights;
}

export function weightOf({ strategy, weights }: Pick<Pool, 'strategy' | 'weights'>, queue: string): number {
  return strategy === 'weighted' ? (own(weights, queue) ?? 1) : 1;
}
