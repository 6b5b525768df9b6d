import type { DurableObject } from 'cloudflare:workers';
import type { Outcome } from '../job/errors';
import { answering, type Verbs } from './answering';
import type { FollowRequest } from './feed-messages';
import type { Followers } from './followers';
import { askForSocket, upgradeAnswer, wantedBy } from './upgrade';

export interface FollowedLife {
  readonly followers: Followers;
  follow(wanted: FollowRequest): Outcome<Response> | Promise<Outcome<Response>>;
}

/** Parameter of the upgrade: what the follower wants, as JSON. */
const WANTED = 'follow';

/** Asks an object to be followed. @returns the socket, not accepted yet */
export const askToFollow = (
  object: Pick<DurableObjectStub, 'fetch'>,
  wanted: FollowRequest,
): Promise<Outcome<WebSocket>> => askForSocket(object, WANTED, wanted);

/** As {@link answering}; followers come in by an upgrade. */
export function followed<Env, Life extends FollowedLife, Api>(verbs: Verbs<Life>) {
  abstract class Followed extends (answering<Env, Life, Api>(verbs) as new (
    ctx: DurableObjectState,
    env: Env,
  ) => DurableObject<Env>) {
    abstract readonly life: Life;

    override async fetch(request: Request): Promise<Response> {
      return upgradeAnswer(await this.life.follow(wantedBy<FollowRequest>(request, WANTED) ?? {}));
    }

    override webSocketMessage(socket: WebSocket, message: string | ArrayBuffer): void {
      this.life.followers.received(socket, message);
    }

    override webSocketClose(socket: WebSocket): void {
      this.life.followers.left(socket);
    }

    override webSocketError(socket: WebSocket): void {
      this.life.followers.left(socket);
    }
  }
  return Followed as unknown as new (
    ctx: DurableObjectState,
    env: Env,
  ) => DurableObject<Env> & Api;
}
