/** Sockets of a long-lived client, one per queue. Jobs go over HTTP while a socket cannot take them. */
import { atMost, Changes } from '../handler/timing';
import { aborted, InvalidJobError } from '../producer/errors';
import type { PreparedJob } from '../producer/job';
import { member } from './answers';
import type { Dial } from './dial';
import { Redial } from './redial';
import { LONGEST_MESSAGE, PROTOCOL, type QueueSocket, WorkerChannel } from './worker-channel';

/** Sockets at once; the least recently used one is closed for another queue. */
const MAX_SOCKETS = 50;

/** Most characters and messages without an answer over one socket; more must wait. */
const MAX_HELD_CHARS = 2 * 1024 * 1024;
const MAX_HELD_MESSAGES = 64;

export interface ProducerOptions {
  dial: Dial;
  timeoutMs: number;
  id: string;
  onWarning: (warning: string) => void;
}

export class ProducerSockets {
  /** By queue, the least recently used first. */
  readonly #sockets = new Map<string, ProducerSocket>();
  #isClosed = false;

  constructor(private readonly options: ProducerOptions) {}

  /** Enqueues jobs, all or none. @returns undefined: no socket takes them now @throws {UnavailableError} and others */
  async send(queue: string, jobs: readonly PreparedJob[], signal: AbortSignal | undefined): Promise<unknown> {
    const text = jobs.map(({ json }) => json).join(',');
    if (this.#isClosed || text.length > LONGEST_MESSAGE) return undefined;
    return await this.#of(queue).send(text, signal);
  }

  #of(queue: string): ProducerSocket {
    const socket = this.#sockets.get(queue) ?? new ProducerSocket(queue, this.options);
    this.#sockets.delete(queue);
    this.#sockets.set(queue, socket);
    if (this.#sockets.size > MAX_SOCKETS) {
      for (const [name, other] of this.#sockets) {
        if (other === socket || other.isBusy) continue;
        this.#sockets.delete(name);
        void other.close();
        break;
      }
    }
    return socket;
  }

  /** Closes all sockets, each once what is under way has been answered. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#sockets.values()].map((socket) => socket.close()));
    this.#sockets.clear();
  }
}

class ProducerSocket {
  #channel: QueueSocket | undefined;
  #isOpening = false;
  #isClosed = false;
  #heldChars = 0;
  #heldMessages = 0;
  readonly #redial = new Redial();
  readonly #changes = new Changes();

  constructor(
    private readonly queue: string,
    private readonly options: ProducerOptions,
  ) {}

  get isBusy(): boolean {
    return this.#heldMessages > 0;
  }

  async send(jobs: string, signal: AbortSignal | undefined): Promise<unknown> {
    if (!this.#channel?.isOpen) {
      void this.#connect();
      return undefined;
    }
    while (this.#isFull(jobs.length)) await this.#changes.next();
    const channel = this.#channel;
    if (!channel?.isOpen || this.#isClosed) return undefined;
    if (signal?.aborted) throw aborted(signal, false);
    this.#heldChars += jobs.length;
    this.#heldMessages++;
    try {
      return await this.#ask(channel, jobs, signal);
    } catch (error) {
      if (!isUnknownMessage(error)) throw error;
      // The server is of an earlier release.
      this.#redial.never();
      channel.close();
      return undefined;
    } finally {
      this.#heldChars -= jobs.length;
      this.#heldMessages--;
      this.#changes.notify();
    }
  }

  #isFull(chars: number): boolean {
    return this.isBusy && (this.#heldChars + chars > MAX_HELD_CHARS || this.#heldMessages >= MAX_HELD_MESSAGES);
  }

  async #ask(channel: QueueSocket, jobs: string, signal: AbortSignal | undefined): Promise<unknown> {
    const asked = channel.enqueue(jobs);
    const isAnswered = await atMost(this.options.timeoutMs, asked, signal);
    if (!isAnswered && signal?.aborted) throw aborted(signal, true);
    // A connection may be gone without a word.
    if (!isAnswered) channel.abandon();
    const answer = await asked;
    const warnings = member(answer, 'warnings');
    if (Array.isArray(warnings)) {
      for (const warning of warnings) if (typeof warning === 'string') this.options.onWarning(warning);
    }
    return answer;
  }

  async #connect(): Promise<void> {
    if (this.#isOpening || this.#isClosed) return;
    this.#isOpening = true;
    // Asked for each enqueue while there is no connection: what a connection needs is made when it is tried.
    this.#channel = await this.#redial.open(async () => {
      const query = new URLSearchParams({ queue: this.queue, worker_id: this.options.id });
      const nothing = () => undefined;
      const ignored = { jobs: nothing, taken: nothing, directive: nothing, refused: nothing };
      const socket = await this.options.dial(`/workers/socket?${query}`, PROTOCOL);
      return new WorkerChannel(socket, { ...ignored, lost: () => this.#redial.lost() });
    });
    this.#isOpening = false;
    if (this.#isClosed) this.#channel?.close();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    while (this.isBusy) await this.#changes.next();
    this.#channel?.close();
  }
}

/** Does the server not know what `enqueue` means? The type of a job has a path of its own. */
const isUnknownMessage = (error: unknown): boolean => error instanceof InvalidJobError && error.field === 'type';
