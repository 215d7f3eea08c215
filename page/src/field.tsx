// A field for what is typed: taken with Enter, or when one goes elsewhere. What else is drawn meanwhile leaves it alone.
import { Component, type JSX } from "preact";

interface Props extends Omit<JSX.InputHTMLAttributes<HTMLInputElement>, "value" | "size"> {
  value: string;
  /** Takes what was typed, and says what the field then shows. */
  onTake: (text: string) => string;
  /** Wider, the more is typed: grown afterwards only, it would move what one is about to click. */
  grows?: boolean;
}

const widthOf = (text: string) => Math.max(4, text.length);

export class Field extends Component<Props> {
  /** Preact would put `value` back into a field that somebody types in. */
  shouldComponentUpdate(next: Props): boolean {
    return next.value !== this.props.value;
  }

  render({ value, onTake: _, grows, ...attributes }: Props) {
    return (
      <input {...attributes} value={value} size={grows ? widthOf(value) : undefined}
        onInput={({ currentTarget: field }) => { if (grows) field.size = widthOf(field.value); }}
        onChange={({ currentTarget: field }) => { field.value = this.props.onTake(field.value); }} />
    );
  }
}
