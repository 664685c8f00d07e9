package dynamo

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/kessai/kessai/internal/store"
)

func keyValues(key store.Key) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{attrPK: toValue(key.PK), attrSK: toValue(key.SK)}
}

func keyOf(values map[string]types.AttributeValue) (store.Key, error) {
	pk, okPK := values[attrPK].(*types.AttributeValueMemberS)
	sk, okSK := values[attrSK].(*types.AttributeValueMemberS)
	if !okPK || !okSK {
		return store.Key{}, errors.New("item without a key of two strings")
	}
	return store.Key{PK: pk.Value, SK: sk.Value}, nil
}

// toValues is the whole item with its key.
func toValues(key store.Key, item store.Item) map[string]types.AttributeValue {
	values := keyValues(key)
	for name, v := range item {
		values[name] = toValue(v)
	}
	return values
}

// toValue converts a value that store.ValidateWrites accepts.
func toValue(v any) types.AttributeValue {
	switch v := v.(type) {
	case string:
		return &types.AttributeValueMemberS{Value: v}
	case int64:
		return &types.AttributeValueMemberN{Value: strconv.FormatInt(v, 10)}
	case bool:
		return &types.AttributeValueMemberBOOL{Value: v}
	case []any:
		list := make([]types.AttributeValue, len(v))
		for i, e := range v {
			list[i] = toValue(e)
		}
		return &types.AttributeValueMemberL{Value: list}
	case map[string]any:
		m := make(map[string]types.AttributeValue, len(v))
		for name, e := range v {
			m[name] = toValue(e)
		}
		return &types.AttributeValueMemberM{Value: m}
	}
	panic(fmt.Sprintf("dynamo: value of unvalidated type %T", v))
}

// fromValues is the item without its key; nil of nothing.
func fromValues(values map[string]types.AttributeValue) (store.Item, error) {
	if len(values) == 0 {
		return nil, nil
	}
	item := make(store.Item, len(values))
	for name, av := range values {
		if name == attrPK || name == attrSK {
			continue
		}
		v, err := fromValue(av)
		if err != nil {
			return nil, fmt.Errorf("attribute %q: %w", name, err)
		}
		item[name] = v
	}
	return item, nil
}

// fromValue refuses loudly what the port has no type for: a guess would be written
// back.
func fromValue(av types.AttributeValue) (any, error) {
	switch av := av.(type) {
	case *types.AttributeValueMemberS:
		return av.Value, nil
	case *types.AttributeValueMemberN:
		return fromNumber(av.Value)
	case *types.AttributeValueMemberBOOL:
		return av.Value, nil
	case *types.AttributeValueMemberL:
		list := make([]any, len(av.Value))
		for i, e := range av.Value {
			v, err := fromValue(e)
			if err != nil {
				return nil, err
			}
			list[i] = v
		}
		return list, nil
	case *types.AttributeValueMemberM:
		m := make(map[string]any, len(av.Value))
		for name, e := range av.Value {
			v, err := fromValue(e)
			if err != nil {
				return nil, err
			}
			m[name] = v
		}
		return m, nil
	}
	return nil, fmt.Errorf("value of a type this program doesn't use: %T", av)
}

func fromNumber(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("number %q is not a 64-bit integer", s)
	}
	return n, nil
}
