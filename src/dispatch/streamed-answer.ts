/** A streamed answer, in bounded memory: messages are answered as they arrive, outcomes are settled. */
import type { AttemptOutcome } from '../job/attempt/outcome';
import { type ApiError, conflict } from '../job/errors';
import type { EntryText } from './body';
import type { ControlStream } from './control-stream';
import { type RunMessage, readLine, refusalOf, type StreamedLine } from './run-messages';

export interface Listener {
  /** Epoch ms. */
  now(): number;
  settle(outcomes: ReadonlyMap<string, AttemptOutcome>): Promise<void>;
  hear(deliveryId: string, message: RunMessage): Promise<unknown>;
}

export interface UnderWay {
  /** Is this one of them, and does it run? */
  isOpen(deliveryId: string): boolean;
  /** Its outcome has arrived. @param size of the line, in characters */
  ended(deliveryId: string, size: number): void;
}

/** Maximum characters of unanswered messages; beyond, reading pauses, so a handler that does not read waits. */
const MAX_UNANSWERED = 1024 * 1024;

/** A message about steps counts this many characters more: the reply may repeat a record of 768 KiB. */
const STEPS_CHARS = 64 * 1024;

/** A failure counts this many characters. */
const FAILURE_CHARS = 16 * 1024;

/** Characters that an outcome holds, about. */
export const charsOf = (outcome: AttemptOutcome): number =>
  outcome.kind === 'completed' ? (outcome.result?.length ?? 0) : FAILURE_CHARS;

export class StreamedAnswer {
  /** Characters of messages that are being handled. */
  private unanswered = 0;
  private answeredSome: () => void = () => undefined;

  /** @param line absent: the call is closed, and replies are dropped */
  constructor(
    private readonly listener: Listener,
    private readonly line: ControlStream | undefined,
    private readonly underWay: UnderWay,
  ) {}

  /** May more be read? Waits until it may; for ever if the handler never reads, so that its call ends by its limit. */
  async room(): Promise<void> {
    while (this.unanswered > MAX_UNANSWERED) {
      await new Promise<void>((resolve) => {
        this.answeredSome = resolve;
      });
    }
  }

  /** Takes some lines. Messages about a delivery that is not under way, or of another call, change nothing. */
  receive(lines: readonly EntryText[]): void {
    const outcomes = new Map<string, AttemptOutcome>();
    for (const line of lines) {
      const message = readLine(line, this.listener.now());
      if (!message) continue;
      const isOpen = this.underWay.isOpen(message.id);
      if (message.kind === 'outcome') {
        if (!isOpen) continue;
        this.underWay.ended(message.id, line.text.length);
        outcomes.set(message.id, message.outcome);
      } else if (message.kind === 'log') {
        if (isOpen) void this.listener.hear(message.id, message).catch(() => undefined);
      } else {
        const isOfSteps = message.kind === 'call' && message.ask.kind === 'step';
        void this.dealWith(line.text.length + (isOfSteps ? STEPS_CHARS : 0), () => this.answerTo(message, isOpen));
      }
    }
    if (outcomes.size === 0) return;
    const chars = [...outcomes.values()].reduce((sum, outcome) => sum + charsOf(outcome), 0);
    void this.dealWith(chars, () => this.listener.settle(outcomes));
  }

  private async answerTo(message: Extract<StreamedLine, { call: number }>, isOpen: boolean): Promise<void> {
    const reply = async () => {
      if (message.kind === 'wrong') return { error: message.error };
      if (!isOpen) return { error: refusalOf(notUnderWay(message.id)) };
      try {
        const value = await this.listener.hear(message.id, message.ask);
        return value === undefined ? {} : { value };
      } catch (error) {
        return { error: refusalOf(error) };
      }
    };
    await this.line?.reply(message.call, await reply());
  }

  private async dealWith(size: number, work: () => Promise<void>): Promise<void> {
    this.unanswered += size;
    await work();
    this.unanswered -= size;
    this.answeredSome();
  }
}

const notUnderWay = (delivery_id: string): ApiError =>
  conflict(`Delivery ${delivery_id} is not under way in this call.`, { delivery_id });
