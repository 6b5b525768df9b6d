/** Receivers of webhooks on the Internet of the tests, and what they were sent. */
import { env } from 'cloudflare:workers';
import { expect } from 'vitest';
import { until } from './clock';
import { differenceOfMessage } from './described';
import { handler } from './handlers';
import { freshName } from './queue';
import { type Body, type Json, server, V1 } from './server';
import type { Arrival } from './workers/internet';

const SUBSCRIPTIONS = `${V1}/webhooks/subscriptions`;

/** One receiver: its URL says how it answers. */
export class Receiver {
  readonly path = `/${freshName('r')}-${crypto.randomUUID()}`;

  constructor(private readonly order: Record<string, string> = {}) {}

  get url(): string {
    return `https://hook.example${this.path}?${new URLSearchParams(this.order)}`;
  }

  /** What it was sent so far, oldest first. */
  arrivals(): Promise<Arrival[]> {
    return handler<Arrival[]>('INTERNET', `/arrivals?at=${encodeURIComponent(this.path)}`);
  }

  /** What it was sent, once that is so much. */
  async received(count: number): Promise<(Arrival & { event: Json })[]> {
    let last: Arrival[] = [];
    await until(
      async () => {
        last = await this.arrivals();
        return last.length >= count;
      },
      () => `${count} deliveries; there are ${JSON.stringify(last.map(({ body }) => body))}`,
    );
    return last.map((arrival) => {
      const event = JSON.parse(arrival.body) as Json;
      // Its format may be another one.
      const isEvent = typeof event === 'object' && 'specversion' in event;
      if (isEvent) expect(differenceOfMessage(['webhooks.events'], arrival.body)).toBeUndefined();
      return { ...arrival, event };
    });
  }
}

/** Subscribes a receiver; the subscription, with its secret. */
export async function subscribe(receiver: Receiver, members: Json = {}): Promise<Body> {
  return server.ok(201, 'POST', SUBSCRIPTIONS, { url: receiver.url, events: ['*'], ...members });
}

export const subscription = (id: unknown) => server.ok(200, 'GET', `${SUBSCRIPTIONS}/${id}`);

/** The deliveries of a subscription, newest first. */
export async function deliveriesOf(id: unknown): Promise<Json[]> {
  return (await server.ok(200, 'GET', `${V1}/webhooks/deliveries?subscription=${id}`)).items as Json[];
}

/** Waits until the newest delivery of a subscription has come so far. */
export function delivered(id: unknown, status: string, attempt?: number): Promise<Json> {
  let last: Json | undefined;
  return until(
    async () => {
      [last] = await deliveriesOf(id);
      return last?.status === status && (attempt === undefined || last.attempt === attempt) && last;
    },
    () => `a delivery to be ${status}; it is ${JSON.stringify(last)}`,
  );
}

/** The object of a subscription. */
export const senderObject = (id: unknown) => env.DIRECTORY.getByName(`webhook ${id}`);
