/**
 * Live updates: pages load once, then change by events, at most once in {@link BATCH_MS}, so sleeping objects are not
 * woken. Paused updates are held and sent on resume.
 *
 * One WebSocket carries all channels. It reconnects by itself after the last event received; if a gap cannot be filled,
 * the page reloads. Not the client's event streams: browsers open six HTTP/1.1 connections per host, and streams need
 * one per channel.
 */
import { signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { StreamItem } from '../../contract/event-messages';
import type { LiveMessage, LiveRequest } from '../../contract/live-socket';
import { API } from './router';

export type LiveEvent = Readonly<StreamItem>;

export interface Follower {
  onEvents: (events: readonly LiveEvent[]) => void;
  /** Events may be missing: reload. */
  onGap?: () => void;
}

interface Channel {
  followers: Set<Follower>;
  /** Subscribed to, as soon as there is a connection. The server ends it when what it is about is gone. */
  isOn: boolean;
  /** The last event, after which a new connection continues. */
  last?: string;
  /** What its followers are not notified of yet. */
  waiting: LiveEvent[];
  hasGap: boolean;
}

/** Shortest time between two updates of a page, in ms. */
export const BATCH_MS = 800;

/** Events of a channel that are held while updates are paused; with more the page reloads instead. */
const HELD = 2_000;

/** First and longest pause before another try, and how often the connection is proved, in ms. */
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;
const PROOF_MS = 25_000;
const PROOF_LIMIT_MS = 10_000;

/** A connection that no one needs is kept this long, for the next page, ms. */
const LINGER_MS = 5_000;

/** Ids of events that are kept, so that none is shown twice. */
const REMEMBERED = 500;

export const connection = signal<'off' | 'connecting' | 'live' | 'lost'>('off');
export const paused = signal(false);
/** How many events wait while updates are paused. */
export const held = signal(0);
/** Why the server refuses live updates of the page. */
export const refusal = signal('');

type Timer = ReturnType<typeof setTimeout> | undefined;

const channels = new Map<string, Channel>();
/** Names of channels whose end was asked for, until the server confirms it: meanwhile a page may follow them again. */
const leaving: string[] = [];
const seen = new Set<string>();
let socket: WebSocket | undefined;
let tries = 0;
let retry: Timer;
let proof: Timer;
let linger: Timer;
let timer: Timer;
let notifiedAt = 0;

/** Sends the first event after a quiet time immediately, later ones in batches. */
function notifySoon(): void {
  if (paused.value || timer !== undefined) return;
  timer = setTimeout(notify, Math.max(0, notifiedAt + BATCH_MS - Date.now()));
}

function notify(): void {
  timer = undefined;
  notifiedAt = Date.now();
  held.value = 0;
  const batches = [...channels.values()].map((channel) => ({ ...channel }));
  for (const channel of channels.values()) Object.assign(channel, { waiting: [], hasGap: false });
  for (const { followers, hasGap } of batches) if (hasGap) for (const one of followers) one.onGap?.();
  for (const { followers, waiting } of batches) {
    if (waiting.length > 0) for (const one of followers) one.onEvents(waiting);
  }
}

export function setPaused(next: boolean): void {
  paused.value = next;
  if ([...channels.values()].some(({ waiting, hasGap }) => waiting.length > 0 || hasGap)) notifySoon();
}

function hurry(): void {
  if (retry === undefined || document.visibilityState === 'hidden') return;
  tries = 0;
  connect();
}
window.addEventListener('online', hurry);
document.addEventListener('visibilitychange', hurry);

function connect(): void {
  clearTimeout(retry);
  retry = undefined;
  connection.value = tries === 0 ? 'connecting' : 'lost';
  const address = new URL('ws', API);
  address.protocol = address.protocol.replace('http', 'ws');
  const own = new WebSocket(address, 'ojs.v1');
  socket = own;
  own.onopen = () => {
    tries = 0;
    leaving.length = 0;
    connection.value = 'live';
    for (const [name, channel] of channels) if (channel.isOn) subscribe(name, channel);
    proveLater(own);
  };
  own.onmessage = ({ data }) => {
    if (socket !== own) return;
    proveLater(own);
    if (data !== 'pong') receive(JSON.parse(data as string));
  };
  own.onclose = () => lost(own);
}

/** Comes back after a pause that grows, and differs between browsers so that they do not come all at once. */
function lost(own: WebSocket): void {
  if (socket !== own) return;
  socket = undefined;
  clearTimeout(proof);
  connection.value = 'lost';
  const longest = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** tries++);
  retry = setTimeout(connect, longest * (0.5 + Math.random() / 2));
}

/** Ends the connection, when nothing is followed any more. */
function stop(): void {
  clearTimeout(retry);
  clearTimeout(proof);
  retry = undefined;
  const own = socket;
  socket = undefined;
  own?.close(1000);
  tries = 0;
  connection.value = 'off';
}

/** A connection may be gone without a word. The Worker alone answers this; no queue is woken. */
function proveLater(own: WebSocket): void {
  clearTimeout(proof);
  proof = setTimeout(() => {
    if (own.readyState !== WebSocket.OPEN) return;
    own.send('ping');
    proof = setTimeout(() => {
      own.close();
      lost(own);
    }, PROOF_LIMIT_MS);
  }, PROOF_MS);
}

function send(message: LiveRequest): void {
  if (socket?.readyState !== WebSocket.OPEN) return;
  if (message.action === 'unsubscribe') leaving.push(message.channel);
  socket.send(JSON.stringify(message));
}

const subscribe = (channel: string, { last }: Channel): void =>
  send({ action: 'subscribe', channel, ...(last !== undefined && { after: last }) });

function receive(message: LiveMessage): void {
  if (message.type === 'ping') send({ action: 'pong', n: message.n });
  if (!('channel' in message) || message.channel === undefined) return;
  const asked = message.type === 'unsubscribed' ? leaving.indexOf(message.channel) : -1;
  if (asked >= 0) leaving.splice(asked, 1);
  const channel = channels.get(message.channel);
  if (!channel?.isOn || asked >= 0) return;
  if (message.type === 'subscribed') channel.last ??= message.position;
  else if (message.type === 'error') refusal.value = message.message;
  else if (message.type === 'unsubscribed') channel.isOn = false;
  else take(message.channel, channel, message as LiveEvent);
}

function take(name: string, channel: Channel, event: LiveEvent): void {
  if (event.event.startsWith('system.')) {
    channel.hasGap = true;
    notifySoon();
    return;
  }
  channel.last = event.id;
  const mark = `${name} ${event.id} ${event.event}`;
  if (seen.has(mark)) return;
  seen.add(mark);
  for (const oldest of seen) {
    if (seen.size <= REMEMBERED) break;
    seen.delete(oldest);
  }
  if (channel.waiting.length < HELD) channel.waiting.push(event);
  else channel.hasGap = true;
  if (paused.value) held.value++;
  notifySoon();
}

/** The channel of one queue if the filter names only one. @param queues names, separated by commas */
export const channelOf = (queues: string): string =>
  queues === '' || queues.includes(',') ? 'all' : `queue:${queues}`;

/**
 * Follows a channel while the component is shown. The functions may be new at every drawing.
 *
 * @param name `all`, `queue:NAME` or `job:ID`; undefined: none
 */
export function useLive(name: string | undefined, follower: Follower): void {
  const current = useRef(follower);
  current.current = follower;
  useEffect(() => {
    if (name === undefined) return;
    const own: Follower = {
      onEvents: (events) => current.current.onEvents(events),
      onGap: () => current.current.onGap?.(),
    };
    const channel = channels.get(name) ?? { followers: new Set(), isOn: false, waiting: [], hasGap: false };
    channels.set(name, channel);
    channel.followers.add(own);
    clearTimeout(linger);
    if (!channel.isOn) {
      channel.isOn = true;
      subscribe(name, channel);
      if (!socket && retry === undefined) connect();
    }
    return () => {
      channel.followers.delete(own);
      if (channel.followers.size > 0) return;
      channels.delete(name);
      refusal.value = '';
      if (channel.isOn) send({ action: 'unsubscribe', channel: name });
      if (channels.size === 0) linger = setTimeout(stop, LINGER_MS);
    };
  }, [name]);
}
