/** Second names: clients of the Open Job Spec know some members by another name. Answers have both, requests either. */
import { own } from '../job/own';

/** By type of the contract: each second name, and the member that it stands for. The documents of the API follow. */
export const SECOND_NAMES = {
  AlertList: { alerts: 'items' },
  ApiKeyList: { keys: 'items' },
  ArgsSchema: { job_type: 'type' },
  CronGroupList: { groups: 'items' },
  CronList: { cron_jobs: 'crons', entries: 'crons' },
  CronStatus: { id: 'name', cron: 'expression', schedule: 'expression' },
  DeliveryList: { deliveries: 'items' },
  DeliveryQuery: { subscription_id: 'subscription' },
  EventList: { items: 'events' },
  EventQuery: { cursor: 'after', type: 'types' },
  FeedEvent: { timestamp: 'time' },
  JobHistoryEvent: { type: 'event_type' },
  MaintenanceNotice: { estimated_duration: 'duration' },
  MaintenanceState: { maintenance: 'enabled', enabled_at: 'started_at', estimated_end: 'ends_at' },
  NamedSchemaRequest: { job_type: 'type' },
  Pagination: { per_page: 'limit' },
  PoolList: { pools: 'items' },
  QueueGroupList: { groups: 'items' },
  QueueMode: { state: 'status' },
  QueuePool: { id: 'name' },
  QueueSummaryList: { queues: 'items' },
  RateLimitList: { rate_limits: 'items' },
  RateLimitStatus: { waiting_count: 'waiting' },
  SchemaList: { schemas: 'items' },
  SchemaRequest: { args_schema: 'schema' },
  SecretRotated: { new_secret: 'secret' },
  StatsHistory: { data_points: 'data' },
  StreamQuery: { last_event_id: 'after', event_types: 'types', type: 'types' },
  Subscribe: { last_event_id: 'after' },
  TargetList: { targets: 'items' },
  WebhookFilterInForce: { job_types: 'types' },
  WebhookList: { subscriptions: 'items' },
  WorkerList: { workers: 'items' },
  WorkerStatus: { last_heartbeat: 'last_heartbeat_at' },
  WorkflowHeader: { started_at: 'created_at' },
  WorkflowList: { workflows: 'items' },
  WorkflowStatus: { cancelled_steps: 'steps_cancelled' },
  WorkflowSummary: { steps_total: 'step_count' },
} as const satisfies Record<string, Record<string, string>>;

type Table = typeof SECOND_NAMES;

/** A type of the contract some of whose members have second names. */
export type Doubled = keyof Table;

type SecondsOf<Of extends Doubled, First> = {
  [Second in keyof Table[Of]]: Table[Of][Second] extends First ? Second : never;
}[keyof Table[Of]];

/** These members with their second names. */
export type Also<Of extends Doubled, T> = T & { [First in keyof T as SecondsOf<Of, First>]: T[First] };

const secondsOf = (of: Doubled): [second: string, first: string][] => Object.entries(SECOND_NAMES[of]);

/** These members with their second names; a member that is absent has none. */
export function also<Of extends Doubled, T extends object>(of: Of, members: T): Also<Of, T> {
  const all = { ...members } as Record<string, unknown>;
  for (const [second, first] of secondsOf(of)) if (Object.hasOwn(all, first)) all[second] = all[first];
  return all as Also<Of, T>;
}

/** All names of a member, its own first. */
export const namesOf = (of: Doubled, member: string): string[] => [
  member,
  ...secondsOf(of).flatMap(([second, first]) => (first === member ? [second] : [])),
];

/** The name by which a request gives a member: of those that say something the first, else the member's own. */
export const nameGiven = <Member extends string>(of: Doubled, member: Member, given: Record<string, unknown>): Member =>
  (namesOf(of, member).find((name) => (own(given, name) ?? '') !== '') as Member | undefined) ?? member;
