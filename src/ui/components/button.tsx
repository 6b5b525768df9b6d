/** A button, apart from other parts: the frame of the dashboard needs it at once. */
import type { ComponentProps } from 'preact';
import type { Further } from '../core/further';
import { Icon, type IconName } from './icon';

export interface ButtonProps extends Omit<ComponentProps<'button'>, 'icon' | 'label'> {
  label?: string | undefined;
  icon?: IconName | undefined;
  /** Of the icon, px. */
  size?: number;
}

/** A link that looks like a button. */
export const LinkButton = ({ to, icon, label }: Pick<ButtonProps, 'icon' | 'label'> & { to: string }) => (
  <a class="button" href={to}>
    {icon && <Icon name={icon} size={14} />}
    {label}
  </a>
);

export const Button = ({ label, icon, size = 14, children, ...attributes }: ButtonProps) => (
  <button type="button" {...attributes}>
    {icon && <Icon name={icon} size={size} />}
    {label}
    {children}
  </button>
);

/** Looks further. @param props.of what {@link useFurther} returns */
export function FurtherButton({ of: { busy, look }, label }: { of: Pick<Further, 'busy' | 'look'>; label: string }) {
  return <Button label={busy ? 'Searching…' : label} class="link" disabled={busy} onClick={look} />;
}
