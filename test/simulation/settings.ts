/** What operators say of the queue as a whole: its bound, its own limits, maintenance, draining; now, and for all queues. */
import fc from 'fast-check';
import { configure, setMode, takeDefaults } from '../../src/queue/features/lifecycle/settings';
import { find, viewOf } from '../../src/queue/read/find';
import type { QueueConfig } from '../../src/settings';
import type { Area, Weighted } from './area';
import { configured, queueOf, RATE_PERIOD, type Settings } from './model-queue';
import type { Scene } from './scene';
import type { StepOf } from './steps';

export type SettingsStep =
  | { op: 'configure'; layer: 'own' | 'deployment'; change: Settings }
  /** For so many ms; null: until it is ended; 0: it ends now. */
  | { op: 'maintain'; ms: number | null }
  | { op: 'drain'; draining: boolean };

/** Settings as they are written; what goes back to the layer below is null. */
function wireOf(change: Settings): Record<string, unknown> {
  const { limit } = change;
  return {
    ...('maxDepth' in change && { max_depth: change.maxDepth ?? null }),
    ...('overflow' in change && { overflow: change.overflow ?? null }),
    ...('limit' in change && {
      rate_limit: limit
        ? {
            ...(limit.concurrency !== undefined && { concurrency: limit.concurrency }),
            ...(limit.rate !== undefined && { rate: { limit: limit.rate, period_ms: RATE_PERIOD } }),
          }
        : null,
    }),
  };
}

function change(scene: Scene, { layer, change }: StepOf<'configure'>): void {
  const { q, model } = scene;
  scene.write(() => {
    if (layer === 'own') configure(q, wireOf(change));
    else {
      const config: Record<string, unknown> = { ...q.config.defaults?.config, ...wireOf(change) };
      for (const [name, value] of Object.entries(config)) if (value === null) delete config[name];
      takeDefaults(q, {
        ...q.config.defaults,
        config: config as QueueConfig,
        version: (q.config.defaults?.version ?? 0) + 1,
      });
    }
  });
  scene.tidy();
  configured(model, layer, change);
}

function maintain(scene: Scene, { ms }: StepOf<'maintain'>): void {
  const { q, model, now } = scene;
  const { maintenance: _, ...others } = q.config.defaults ?? { config: {} };
  const ends = ms === null ? {} : { ends_at: now + ms };
  const version = (q.config.defaults?.version ?? 0) + 1;
  scene.write(() =>
    takeDefaults(q, { ...others, version, ...(ms !== 0 && { maintenance: { started_at: now, ...ends } }) }),
  );
  scene.tidy();
  queueOf(model).shutUntil = ms === 0 ? Number.NEGATIVE_INFINITY : ms === null ? Number.POSITIVE_INFINITY : now + ms;
}

function drain(scene: Scene, { draining }: StepOf<'drain'>): void {
  scene.write((now) => setMode(scene.q, draining ? 'draining' : 'active', now));
  scene.tidy();
  scene.model.paused = false;
  queueOf(scene.model).draining = draining;
}

const layer = fc.constantFrom('own' as const, 'own' as const, 'deployment' as const);

const changes = {
  bound: fc.record({
    maxDepth: fc.constantFrom(undefined, 2, 4, 4, 7, 12),
    overflow: fc.constantFrom(undefined, 'reject' as const, 'drop_oldest' as const),
  }),
  limit: fc.record({
    limit: fc.constantFrom<Settings['limit'][]>(
      undefined,
      { rate: 1 },
      { rate: 3 },
      { concurrency: 1 },
      { concurrency: 3, rate: 2 },
    ),
  }),
};

const stepOf = (change: fc.Arbitrary<Settings>) => fc.record({ op: fc.constant('configure' as const), layer, change });

/** Steps of histories in which no entry fires. */
export const settingsSteps: Weighted<SettingsStep>[] = [
  { weight: 2, arbitrary: stepOf(changes.limit) },
  { weight: 1, arbitrary: stepOf(changes.bound) },
  {
    weight: 1,
    arbitrary: fc.record({ op: fc.constant('maintain' as const), ms: fc.constantFrom(0, 400, 400, 20_000, null) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      op: fc.constant('drain' as const),
      draining: fc.oneof({ weight: 1, arbitrary: fc.constant(true) }, { weight: 3, arbitrary: fc.constant(false) }),
    }),
  },
];

/** The first step of a history that is about a bound. */
export const bounding = stepOf(changes.bound);

export const area: Area<SettingsStep> = {
  kinds: { configure: change, maintain, drain },
  begin(scene, { mostAtOnce }) {
    scene.model.isDropped = ({ id }) =>
      scene.world.quietly(() => {
        const found = find(scene.q, id);
        return found !== undefined && viewOf(scene.q, found, scene.now).record.state === 'discarded';
      });
    scene.model.isThere = ({ id }) => scene.world.quietly(() => find(scene.q, id) !== undefined);
    if (mostAtOnce === undefined) return;
    queueOf(scene.model).most = mostAtOnce;
    scene.q.store.leases.mostAtOnce = mostAtOnce;
  },
  evicted(scene) {
    const { most } = queueOf(scene.model);
    if (Number.isFinite(most)) scene.q.store.leases.mostAtOnce = most;
  },
  clear(scene) {
    for (const layer of ['own', 'deployment'] as const) {
      change(scene, { op: 'configure', layer, change: { maxDepth: undefined, overflow: undefined, limit: undefined } });
      scene.finish();
    }
    maintain(scene, { op: 'maintain', ms: 0 });
    scene.finish();
    drain(scene, { op: 'drain', draining: false });
  },
};
